// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <numbers>

#include "trainer/api/lr_scheduler.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/decay_config.h"
#include "trainer/optim/warmup.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

/// A warm-up, then half a cosine down to min_lr_ratio (Loshchilov and Hutter, 2017, without
/// restarts).
class CosineSchedule : public LrScheduler {
 public:
  using Config = DecayConfig;

  explicit CosineSchedule(Config config) : config_(config) {}

  double factor(int64_t step, int64_t total_steps) const override {
    if (in_warmup(step, config_.warmup_steps)) return warmup_factor(step, config_.warmup_steps);
    const double progress =
        decay_progress(step, config_.warmup_steps, last_decay_step(config_, total_steps));
    const double wave = 0.5 * (1 + std::cos(std::numbers::pi * progress));
    return config_.min_lr_ratio + (1 - config_.min_lr_ratio) * wave;
  }
  bool needs_total_steps() const override { return !config_.decay_steps; }

 private:
  Config config_;
};

REGISTER_LR_SCHEDULER("cosine", CosineSchedule);

}  // namespace
}  // namespace phalanx
