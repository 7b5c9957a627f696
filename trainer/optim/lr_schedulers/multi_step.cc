// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/tree/schema.h"
#include "trainer/optim/decay_fields.h"
#include "trainer/optim/warmup_schedule.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

struct MultiStepConfig {
  int64_t warmup_steps = 0;
  std::vector<int64_t> milestones;
  double gamma = 0.1;

  static void describe(config::Schema<MultiStepConfig>& s) {
    describe_warmup(s);
    s.field("milestones", &MultiStepConfig::milestones,
            "steps from which on the learning rate is multiplied by gamma once more, ascending")
        .mandatory()
        .at_least(1)
        .count()
        .unit("steps")
        .resume_may_change();
    s.field("gamma", &MultiStepConfig::gamma, "factor at each milestone")
        .greater_than(0)
        .at_most(1)
        .resume_may_change();
    s.check([](const MultiStepConfig& c) -> std::optional<std::string> {
      const auto& steps = c.milestones;
      if (std::ranges::adjacent_find(steps, std::greater_equal<>()) != steps.end()) {
        return "milestones must ascend, each of them once";
      }
      if (steps.empty() || steps.front() > c.warmup_steps) return std::nullopt;
      return "the first of the milestones (" + std::to_string(steps.front()) +
             ") counts from the start of the run and must exceed warmup_steps (" +
             std::to_string(c.warmup_steps) + ")";
    });
  }
};

/// A warm-up, then a factor gamma at each milestone (torch's MultiStepLR).
class MultiStepSchedule : public WarmupSchedule<MultiStepConfig> {
 public:
  using WarmupSchedule::WarmupSchedule;

 private:
  double factor_after(int64_t step, int64_t) const override {
    const auto passed = std::ranges::upper_bound(config().milestones, step);
    return std::pow(config().gamma, passed - config().milestones.begin());
  }
};

REGISTER_LR_SCHEDULER("multi_step", MultiStepSchedule);

}  // namespace
}  // namespace phalanx
