// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "trainer/api/lr_scheduler.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/decay_fields.h"
#include "trainer/optim/warmup.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

struct ConstantConfig {
  int64_t warmup_steps = 0;

  static void describe(config::Schema<ConstantConfig>& s) { describe_warmup(s); }
};

/// The same learning rate throughout, after a warm-up.
class ConstantSchedule : public LrScheduler {
 public:
  using Config = ConstantConfig;

  explicit ConstantSchedule(Config config) : config_(config) {}

  double factor(int64_t step, int64_t) const override {
    if (in_warmup(step, config_.warmup_steps)) return warmup_factor(step, config_.warmup_steps);
    return 1;
  }
  bool needs_total_steps() const override { return false; }

 private:
  Config config_;
};

REGISTER_LR_SCHEDULER("constant", ConstantSchedule);

}  // namespace
}  // namespace phalanx
