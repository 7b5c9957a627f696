// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <optional>

#include "trainer/config/tree/schema.h"
#include "trainer/optim/decay_config.h"
#include "trainer/optim/decay_fields.h"
#include "trainer/optim/warmup.h"
#include "trainer/optim/warmup_schedule.h"
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
class PolynomialSchedule : public WarmupSchedule<PolynomialConfig> {
 public:
  using WarmupSchedule::WarmupSchedule;

 private:
  double factor_after(int64_t step, int64_t total_steps) const override {
    const double progress =
        decay_progress(step, config().warmup_steps, last_decay_step(config(), total_steps));
    return config().min_lr_ratio +
           (1 - config().min_lr_ratio) * std::pow(1 - progress, config().power);
  }
};

REGISTER_LR_SCHEDULER("polynomial", PolynomialSchedule);

}  // namespace
}  // namespace phalanx
