// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include "trainer/api/lr_scheduler.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/warmup.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

struct InverseSqrtConfig {
  int64_t warmup_steps = 1;

  static void describe(config::Schema<InverseSqrtConfig>& s) {
    s.field("warmup_steps", &InverseSqrtConfig::warmup_steps,
            "linear warm-up from 0 to lr; the decay is sqrt(warmup_steps / step)")
        .at_least(1)
        .count()
        .unit("steps");
  }
};

/// A warm-up, then a decay with the inverse square root of the step (Vaswani et al., 2017).
class InverseSqrtSchedule : public LrScheduler {
 public:
  using Config = InverseSqrtConfig;

  explicit InverseSqrtSchedule(Config config) : config_(config) {}

  double factor(int64_t step, int64_t) const override {
    if (in_warmup(step, config_.warmup_steps)) return warmup_factor(step, config_.warmup_steps);
    return std::sqrt(static_cast<double>(config_.warmup_steps) / static_cast<double>(step));
  }
  bool needs_total_steps() const override { return false; }

 private:
  Config config_;
};

REGISTER_LR_SCHEDULER("inverse_sqrt", InverseSqrtSchedule);

}  // namespace
}  // namespace phalanx
