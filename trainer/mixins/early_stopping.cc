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

const char* name_of(Better mode) { return mode == Better::lower ? "min" : "max"; }

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

EarlyStopping::EarlyStopping(EarlyStoppingConfig config) : config_(std::move(config)) {}

bool EarlyStopping::is_better(double value, double than) const {
  return config_.mode == Better::lower ? value + config_.min_delta < than
                                       : value - config_.min_delta > than;
}

void EarlyStopping::take(double value, int64_t step) {
  last_ = value;
  if (std::isfinite(value) && (!best_ || is_better(value, *best_))) {
    best_ = value;
    best_step_ = step;
    without_progress_ = 0;
  } else {
    ++without_progress_;
  }
}

// By the config as it is now: a resume may have changed it.
std::string EarlyStopping::reason() const {
  if (!last_) return "";
  const std::string& metric = *config_.metric;
  if (config_.check_finite && !std::isfinite(*last_)) {
    return fmt::format("{} is {} (early_stopping.check_finite)", metric, unsigned_nan(*last_));
  }
  if (config_.threshold) {
    const bool is_reached =
        config_.mode == Better::lower ? *last_ <= *config_.threshold : *last_ >= *config_.threshold;
    if (is_reached) {
      return fmt::format("{} {:.6g} has reached early_stopping.threshold, {:.6g}", metric, *last_,
                         *config_.threshold);
    }
  }
  if (without_progress_ < config_.patience) return "";
  const std::string best =
      best_ ? fmt::format(": the best was {:.6g} at step {}", *best_, best_step_) : "";
  return fmt::format("{} has got no better in {} validation{}{} (early_stopping.patience {})",
                     metric, without_progress_, without_progress_ == 1 ? "" : "s", best,
                     config_.patience);
}

std::string EarlyStopping::json() const {
  return Json{{"metric", *config_.metric},
              {"mode", name_of(config_.mode)},
              {"validated", last_.has_value()},
              {"last", to_json(last_)},
              {"best", to_json(best_)},
              {"best_step", best_step_},
              {"without_progress", without_progress_}}
      .dump();
}

// What another metric, or the other end of this one, has come to says nothing of this one.
void EarlyStopping::restore(std::string_view json) {
  try {
    const Json state = Json::parse(json);
    if (state.at("metric").get<std::string>() != *config_.metric) return;
    if (state.at("mode").get<std::string>() != name_of(config_.mode)) return;
    best_ = number_in(state.at("best"));
    best_step_ = state.at("best_step").get<int64_t>();
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
