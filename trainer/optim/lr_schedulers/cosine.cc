// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <numbers>

#include "trainer/config/tree/schema.h"
#include "trainer/optim/decay_config.h"
#include "trainer/optim/warmup.h"
#include "trainer/optim/warmup_schedule.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

/// A warm-up, then half a cosine down to min_lr_ratio (Loshchilov and Hutter, 2017, without
/// restarts).
class CosineSchedule : public WarmupSchedule<DecayConfig> {
 public:
  using WarmupSchedule::WarmupSchedule;

 private:
  double factor_after(int64_t step, int64_t total_steps) const override {
    const double progress =
        decay_progress(step, config().warmup_steps, last_decay_step(config(), total_steps));
    const double wave = 0.5 * (1 + std::cos(std::numbers::pi * progress));
    return config().min_lr_ratio + (1 - config().min_lr_ratio) * wave;
  }
};

REGISTER_LR_SCHEDULER("cosine", CosineSchedule);

}  // namespace
}  // namespace phalanx
