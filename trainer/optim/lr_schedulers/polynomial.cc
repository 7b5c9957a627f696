// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <optional>

#include "trainer/api/lr_scheduler.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/decay_config.h"
#include "trainer/optim/decay_fields.h"
#include "trainer/optim/warmup.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

struct PolynomialConfig {
  int64_t warmup_steps = 0;
  std::optional<int64_t> decay_steps;
  double min_lr_ratio = 0;
  double power = 1;

  static void describe(config::Schema<PolynomialConfig>& s) {
    describe_decay(s);
    s.field("power", &PolynomialConfig::power,
            "of the share of steps that are left; 1: a straight line")
        .greater_than(0);
  }
};

/// A warm-up, then a power of the share of steps that are left, down to min_lr_ratio
/// (torch's PolynomialLR, transformers' get_polynomial_decay_schedule_with_warmup).
class PolynomialSchedule : public LrScheduler {
 public:
  using Config = PolynomialConfig;

  explicit PolynomialSchedule(Config config) : config_(config) {}

  double factor(int64_t step, int64_t total_steps) const override {
    if (in_warmup(step, config_.warmup_steps)) return warmup_factor(step, config_.warmup_steps);
    const double progress =
        decay_progress(step, config_.warmup_steps, last_decay_step(config_, total_steps));
    return config_.min_lr_ratio +
           (1 - config_.min_lr_ratio) * std::pow(1 - progress, config_.power);
  }
  bool needs_total_steps() const override { return !config_.decay_steps; }

 private:
  Config config_;
};

REGISTER_LR_SCHEDULER("polynomial", PolynomialSchedule);

}  // namespace
}  // namespace phalanx
