// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "trainer/config/tree/schema.h"
#include "trainer/optim/decay_fields.h"
#include "trainer/optim/warmup_schedule.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

struct ConstantConfig {
  int64_t warmup_steps = 0;

  static void describe(config::Schema<ConstantConfig>& s) { describe_warmup(s); }
};

/// The same learning rate throughout, after a warm-up.
class ConstantSchedule : public WarmupSchedule<ConstantConfig> {
 public:
  using WarmupSchedule::WarmupSchedule;

 private:
  double factor_after(int64_t, int64_t) const override { return 1; }
};

REGISTER_LR_SCHEDULER("constant", ConstantSchedule);

}  // namespace
}  // namespace phalanx
