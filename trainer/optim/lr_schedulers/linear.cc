// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "trainer/config/tree/schema.h"
#include "trainer/optim/decay_config.h"
#include "trainer/optim/warmup.h"
#include "trainer/optim/warmup_schedule.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

/// A warm-up, then a straight line down to min_lr_ratio.
class LinearSchedule : public WarmupSchedule<DecayConfig> {
 public:
  using WarmupSchedule::WarmupSchedule;

 private:
  double factor_after(int64_t step, int64_t total_steps) const override {
    const double progress =
        decay_progress(step, config().warmup_steps, last_decay_step(config(), total_steps));
    return config().min_lr_ratio + (1 - config().min_lr_ratio) * (1 - progress);
  }
};

REGISTER_LR_SCHEDULER("linear", LinearSchedule);

}  // namespace
}  // namespace phalanx
