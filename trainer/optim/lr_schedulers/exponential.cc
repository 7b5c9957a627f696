// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include "trainer/api/lr_scheduler.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/decay_fields.h"
#include "trainer/optim/warmup.h"
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
class ExponentialSchedule : public LrScheduler {
 public:
  using Config = ExponentialConfig;

  explicit ExponentialSchedule(Config config) : config_(config) {}

  double factor(int64_t step, int64_t) const override {
    if (in_warmup(step, config_.warmup_steps)) return warmup_factor(step, config_.warmup_steps);
    return std::pow(config_.gamma, step - config_.warmup_steps);
  }
  bool needs_total_steps() const override { return false; }

 private:
  Config config_;
};

REGISTER_LR_SCHEDULER("exponential", ExponentialSchedule);

}  // namespace
}  // namespace phalanx
