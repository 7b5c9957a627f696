// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/early_stopping.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "trainer/base/json_cause.h"
#include "trainer/base/unsigned_nan.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no number that is not finite: null.
std::optional<double> number_in(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

Json to_json(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json();
}

}  // namespace

void EarlyStoppingConfig::describe(config::Schema<EarlyStoppingConfig>& s) {
  s.field("metric", &EarlyStoppingConfig::metric,
          "end the run when this value of its validations gets no better; null: do not")
      .resume_may_change();
  s.field("mode", &EarlyStoppingConfig::mode, "min: lower is better; max: higher is")
      .choices({{"min", Better::lower}, {"max", Better::higher}})
      .resume_may_change();
  s.field("patience", &EarlyStoppingConfig::patience,
          "the run ends with the n-th validation in a row that is no better than the best before")
      .at_least(1)
      .unit("validations")
      .resume_may_change();
  s.field("min_delta", &EarlyStoppingConfig::min_delta,
          "how much better than the best a value must be to count as better")
      .at_least(0)
      .resume_may_change();
  s.field("threshold", &EarlyStoppingConfig::threshold,
          "end the run once the value is as good as this; null: do not")
      .resume_may_change();
  s.field("check_finite", &EarlyStoppingConfig::check_finite,
          "end the run when the value is no finite number; false: such a value is no better")
      .resume_may_change();
  s.ineffective({"mode", "patience", "min_delta", "threshold", "check_finite"}, "metric is null",
                [](const EarlyStoppingConfig& c) { return !c.metric; });
}

EarlyStopping::EarlyStopping(EarlyStoppingConfig config)
    : config_(std::move(config)), metric_(*config_.metric, config_.mode) {}

void EarlyStopping::take(double value, int64_t step) {
  last_ = value;
  if (metric_.take(value, step, {.amount = config_.min_delta})) {
    without_progress_ = 0;
  } else {
    ++without_progress_;
  }
}

// By the config as it is now: a resume may have changed it.
std::string EarlyStopping::reason() const {
  if (!last_) return "";
  const std::string& metric = metric_.name();
  if (config_.check_finite && !std::isfinite(*last_)) {
    return fmt::format("{} is {} (early_stopping.check_finite)", metric, unsigned_nan(*last_));
  }
  if (config_.threshold && metric_.has_reached(*last_, *config_.threshold)) {
    return fmt::format("{} {:.6g} has reached early_stopping.threshold, {:.6g}", metric, *last_,
                       *config_.threshold);
  }
  if (without_progress_ < config_.patience) return "";
  const std::string best = metric_.best() ? fmt::format(": the best was {:.6g} at step {}",
                                                        *metric_.best(), metric_.best_step())
                                          : "";
  const std::string margin =
      config_.min_delta > 0
          ? fmt::format(" by more than {:.6g} (early_stopping.min_delta)", config_.min_delta)
          : "";
  return fmt::format("{} has got no better{} in {} validation{}{} (early_stopping.patience {})",
                     metric, margin, without_progress_, without_progress_ == 1 ? "" : "s", best,
                     config_.patience);
}

std::string EarlyStopping::json() const {
  Json state;
  metric_.write(state);
  state["validated"] = last_.has_value();
  state["last"] = to_json(last_);
  state["without_progress"] = without_progress_;
  return state.dump();
}

void EarlyStopping::restore(std::string_view json) {
  try {
    const Json state = Json::parse(json);
    if (!metric_.read(state)) return;
    without_progress_ = state.at("without_progress").get<int64_t>();
    last_ = number_in(state.at("last"));
    if (!last_ && state.at("validated").get<bool>()) {
      last_ = std::numeric_limits<double>::quiet_NaN();
    }
  } catch (const nlohmann::json::exception& error) {
    throw UserError(fmt::format("the checkpoint's state of early_stopping cannot be read: {}",
                                json_cause(error)));
  }
}

}  // namespace phalanx
