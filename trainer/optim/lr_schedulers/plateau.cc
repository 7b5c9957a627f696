// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/api/lr_scheduler.h"
#include "trainer/api/named_metrics.h"
#include "trainer/api/stateful.h"
#include "trainer/api/tracked_metric.h"
#include "trainer/base/json_cause.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/decay_fields.h"
#include "trainer/optim/warmup.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

enum class ThresholdMode { relative, absolute };

struct PlateauConfig {
  int64_t warmup_steps = 0;
  std::string metric = "loss";
  Better mode = Better::lower;
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  ThresholdMode threshold_mode = ThresholdMode::relative;
  int64_t cooldown = 0;
  double min_lr_ratio = 0;

  static void describe(config::Schema<PlateauConfig>& s) {
    describe_warmup(s);
    s.field("metric", &PlateauConfig::metric, "the value of validations that the rate goes by")
        .resume_may_change();
    s.field("mode", &PlateauConfig::mode, "min: lower is better; max: higher is")
        .choices({{"min", Better::lower}, {"max", Better::higher}})
        .resume_may_change();
    s.field("factor", &PlateauConfig::factor, "what the rate is multiplied by on a plateau")
        .at_least(0)
        .less_than(1)
        .resume_may_change();
    s.field("patience", &PlateauConfig::patience,
            "validations in a row that may be no better; the next such one lowers the rate")
        .at_least(0)
        .unit("validations")
        .resume_may_change();
    s.field("threshold", &PlateauConfig::threshold,
            "how much better than the best a value must be to count as better")
        .at_least(0)
        .resume_may_change();
    s.field("threshold_mode", &PlateauConfig::threshold_mode,
            "rel: threshold is a share of the best; abs: it is a difference")
        .choices({{"rel", ThresholdMode::relative}, {"abs", ThresholdMode::absolute}})
        .resume_may_change();
    s.field("cooldown", &PlateauConfig::cooldown,
            "validations after a lower rate that count for no plateau")
        .at_least(0)
        .unit("validations")
        .resume_may_change();
    s.field("min_lr_ratio", &PlateauConfig::min_lr_ratio, "lowest learning rate, as a share of lr")
        .in_range(0, 1)
        .resume_may_change();
  }
};

/// A warm-up, then a rate that falls when a value of the validations gets no better (torch's
/// ReduceLROnPlateau).
class PlateauSchedule : public LrScheduler, private Stateful {
 public:
  using Config = PlateauConfig;

  explicit PlateauSchedule(Config config)
      : config_(std::move(config)), tracked_(config_.metric, config_.mode) {}

  double factor(int64_t step, int64_t) const override {
    const bool rises = in_warmup(step, config_.warmup_steps);
    return rises ? warmup_factor(step, config_.warmup_steps) * lowered_ : lowered_;
  }
  bool needs_total_steps() const override { return false; }

  void validated(const NamedValues& values) override {
    take(metric_in(values, config_.metric, "lr_scheduler.metric"));
  }

  Stateful* kept_state() override { return this; }

 private:
  void take(double value) {
    const Margin margin{.amount = config_.threshold,
                        .is_relative = config_.threshold_mode == ThresholdMode::relative};
    if (tracked_.take(value, /*step=*/0, margin)) {
      bad_ = 0;
    } else {
      ++bad_;
    }
    if (cooling_ > 0) {
      --cooling_;
      bad_ = 0;
    }
    if (bad_ <= config_.patience) return;
    lowered_ = std::max(lowered_ * config_.factor, config_.min_lr_ratio);
    cooling_ = config_.cooldown;
    bad_ = 0;
  }

  std::string json() const override {
    Json state{{"lowered", lowered_}, {"bad", bad_}, {"cooling", cooling_}};
    tracked_.write(state);
    return state.dump();
  }

  // The rate stays; what another metric, or the other end of this one, has come to says nothing of
  // this one.
  void restore(std::string_view json) override {
    try {
      const Json state = Json::parse(json);
      lowered_ = state.at("lowered").get<double>();
      if (!tracked_.read(state)) return;
      bad_ = state.at("bad").get<int64_t>();
      cooling_ = state.at("cooling").get<int64_t>();
    } catch (const nlohmann::json::exception& error) {
      throw UserError(
          fmt::format("the state of lr_scheduler plateau cannot be read: {}", json_cause(error)));
    }
  }

  Config config_;
  double lowered_ = 1;  ///< The factor behind the warm-up.
  TrackedMetric tracked_;
  int64_t bad_ = 0;      ///< Validations in a row that were no better.
  int64_t cooling_ = 0;  ///< Validations to come that count for no plateau.
};

REGISTER_LR_SCHEDULER("plateau", PlateauSchedule);

}  // namespace
}  // namespace phalanx
