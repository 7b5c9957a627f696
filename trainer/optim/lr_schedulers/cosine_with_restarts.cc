// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <numbers>

#include "trainer/config/tree/schema.h"
#include "trainer/optim/decay_fields.h"
#include "trainer/optim/warmup_schedule.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

// The longest cycle of any run times it is an int64_t still.
constexpr int64_t kMostLengthening = 1000;

struct RestartsConfig {
  int64_t warmup_steps = 0;
  int64_t cycle_steps = 0;
  int64_t cycle_mult = 1;
  double cycle_decay = 1;
  double min_lr_ratio = 0;

  static void describe(config::Schema<RestartsConfig>& s) {
    describe_warmup(s);
    s.field("cycle_steps", &RestartsConfig::cycle_steps, "steps of the first cycle (torch's T_0)")
        .mandatory()
        .at_least(1)
        .count()
        .unit("steps");
    s.field("cycle_mult", &RestartsConfig::cycle_mult,
            "how many times as long as the one before each further cycle is (torch's T_mult)")
        .in_range(1, kMostLengthening);
    s.field("cycle_decay", &RestartsConfig::cycle_decay,
            "where each further cycle begins, as a share of the one before")
        .greater_than(0)
        .at_most(1)
        .resume_may_change();
    s.field("min_lr_ratio", &RestartsConfig::min_lr_ratio,
            "learning rate at the end of a cycle, as a share of lr")
        .in_range(0, 1)
        .resume_may_change();
  }
};

/// A warm-up, then half a cosine down to min_lr_ratio again and again (Loshchilov and Hutter, 2017;
/// torch's CosineAnnealingWarmRestarts). The step after a cycle's last is the first of the next.
class CosineWithRestartsSchedule : public WarmupSchedule<RestartsConfig> {
 public:
  using WarmupSchedule::WarmupSchedule;

 private:
  double factor_after(int64_t step, int64_t) const override {
    const Place place = place_of(step - config().warmup_steps);
    const double progress = static_cast<double>(place.step) / static_cast<double>(place.steps);
    const double wave = 0.5 * (1 + std::cos(std::numbers::pi * progress));
    return config().min_lr_ratio +
           (1 - config().min_lr_ratio) * std::pow(config().cycle_decay, place.cycle) * wave;
  }

  struct Place {
    int64_t cycle = 0;
    int64_t step = 0;   // From 0, within the cycle.
    int64_t steps = 0;  // The whole cycle has.
  };

  Place place_of(int64_t step) const {
    if (config().cycle_mult == 1) {
      return {.cycle = step / config().cycle_steps,
              .step = step % config().cycle_steps,
              .steps = config().cycle_steps};
    }
    Place place{.cycle = 0, .step = step, .steps = config().cycle_steps};
    while (place.step >= place.steps) {
      place.step -= place.steps;
      place.steps *= config().cycle_mult;
      ++place.cycle;
    }
    return place;
  }
};

REGISTER_LR_SCHEDULER("cosine_with_restarts", CosineWithRestartsSchedule);

}  // namespace
}  // namespace phalanx
