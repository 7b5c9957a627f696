// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>

#include "trainer/api/lr_scheduler.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/decay_config.h"
#include "trainer/optim/limits.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

/// How the learning rate goes from one value to another.
enum class Anneal { cos, linear };

struct OneCycleConfig {
  std::optional<int64_t> decay_steps;
  double pct_start = 0.3;
  Anneal anneal_strategy = Anneal::cos;
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;
  bool cycle_momentum = false;

  static void describe(config::Schema<OneCycleConfig>& s) {
    s.field("decay_steps", &OneCycleConfig::decay_steps,
            "step at which the cycle ends (torch's total_steps); null: the run's last")
        .at_least(1)
        .count()
        .unit("steps")
        .resume_may_change();
    s.field("pct_start", &OneCycleConfig::pct_start,
            "share of the steps in which the learning rate rises to lr (torch's max_lr)")
        .in_range(0, 1);
    s.field("anneal_strategy", &OneCycleConfig::anneal_strategy,
            "rise and fall as half a cosine, or in a straight line")
        .choices({{"cos", Anneal::cos}, {"linear", Anneal::linear}});
    s.field("div_factor", &OneCycleConfig::div_factor, "the first step has lr / div_factor")
        .in_range(1, kLargestFactor);
    s.field("final_div_factor", &OneCycleConfig::final_div_factor,
            "the last step has the first one's learning rate / final_div_factor")
        .in_range(1, kLargestFactor);
    s.field("three_phase", &OneCycleConfig::three_phase,
            "fall to the first step's learning rate in as many steps as it rose in, then on to the "
            "last one's");
    s.field("cycle_momentum", &OneCycleConfig::cycle_momentum,
            "change the momentum against the learning rate; only false is possible");
    s.check([](const OneCycleConfig& c) -> std::optional<std::string> {
      if (!c.cycle_momentum) return std::nullopt;
      return "cycle_momentum is true, but a schedule sets the learning rate alone: set it to false "
             "(torch.optim.lr_scheduler.OneCycleLR has true by default)";
    });
    s.check([](const OneCycleConfig& c) -> std::optional<std::string> {
      if (!c.three_phase || c.pct_start <= 0.5) return std::nullopt;
      return "three_phase needs a pct_start of at most 0.5, as the fall takes as long as the rise";
    });
  }
};

/// One rise from lr / div_factor to lr, and a fall far below (Smith and Topin, 2018; torch's
/// OneCycleLR): step n has torch's value at index n - 1, so that the first step has its first one
/// and the last its last.
class OneCycleSchedule : public LrScheduler {
 public:
  using Config = OneCycleConfig;

  explicit OneCycleSchedule(Config config) : config_(config) {}

  double factor(int64_t step, int64_t total_steps) const override {
    const auto steps = static_cast<double>(last_decay_step(config_, total_steps));
    const double last = steps - 1;
    const double index = std::min(static_cast<double>(step - 1), last);
    const double first_factor = 1 / config_.div_factor;
    const double last_factor = first_factor / config_.final_div_factor;
    const double top = config_.pct_start * steps - 1;
    if (index <= top) return between(first_factor, 1, index, 0, top);
    if (!config_.three_phase) return between(1, last_factor, index, top, last);
    const double down = 2 * config_.pct_start * steps - 2;
    if (index <= down) return between(1, first_factor, index, top, down);
    return between(first_factor, last_factor, index, down, last);
  }
  bool needs_total_steps() const override { return !config_.decay_steps; }

 private:
  // From `from` at index `begin` to `to` at `end`.
  double between(double from, double to, double index, double begin, double end) const {
    const double progress = end > begin ? (index - begin) / (end - begin) : 1;
    if (config_.anneal_strategy == Anneal::linear) return from + (to - from) * progress;
    return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * progress));
  }

  Config config_;
};

REGISTER_LR_SCHEDULER("one_cycle", OneCycleSchedule);

}  // namespace
}  // namespace phalanx
