// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include "trainer/config/tree/schema.h"
#include "trainer/optim/decay_fields.h"
#include "trainer/optim/warmup_schedule.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

struct ExponentialConfig {
  int64_t warmup_steps = 0;
  double gamma = 1;

  static void describe(config::Schema<ExponentialConfig>& s) {
    describe_warmup(s);
    s.field("gamma", &ExponentialConfig::gamma, "factor of each step after the warm-up")
        .mandatory()
        .greater_than(0)
        .at_most(1)
        .resume_may_change();
  }
};

/// A warm-up, then a factor gamma in each step (torch's ExponentialLR).
class ExponentialSchedule : public WarmupSchedule<ExponentialConfig> {
 public:
  using WarmupSchedule::WarmupSchedule;

 private:
  double factor_after(int64_t step, int64_t) const override {
    return std::pow(config().gamma, step - config().warmup_steps);
  }
};

REGISTER_LR_SCHEDULER("exponential", ExponentialSchedule);

}  // namespace
}  // namespace phalanx
