// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include "trainer/config/tree/schema.h"
#include "trainer/optim/warmup_schedule.h"
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
class InverseSqrtSchedule : public WarmupSchedule<InverseSqrtConfig> {
 public:
  using WarmupSchedule::WarmupSchedule;

 private:
  double factor_after(int64_t step, int64_t) const override {
    return std::sqrt(static_cast<double>(config().warmup_steps) / static_cast<double>(step));
  }
};

REGISTER_LR_SCHEDULER("inverse_sqrt", InverseSqrtSchedule);

}  // namespace
}  // namespace phalanx
