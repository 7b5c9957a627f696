// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>

#include "trainer/config/tree/schema.h"
#include "trainer/optim/decay_config.h"
#include "trainer/optim/decay_fields.h"
#include "trainer/optim/warmup.h"
#include "trainer/optim/warmup_schedule.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

/// The shape of the last part.
enum class DecayType { cosine, linear, one_minus_sqrt };

struct WarmupStableDecayConfig {
  int64_t warmup_steps = 0;
  int64_t cooldown_steps = 0;
  DecayType decay_type = DecayType::cosine;
  std::optional<int64_t> decay_steps;
  double min_lr_ratio = 0;

  static void describe(config::Schema<WarmupStableDecayConfig>& s) {
    describe_decay(s);
    s.field("cooldown_steps", &WarmupStableDecayConfig::cooldown_steps,
            "steps of the decay, the last before decay_steps; those between it and the warm-up "
            "have lr")
        .mandatory()
        .at_least(1)
        .count()
        .unit("steps")
        .resume_may_change();
    s.field("decay_type", &WarmupStableDecayConfig::decay_type,
            "half a cosine, a straight line, or 1 less the root of the decay's share that is over")
        .choices({{"cosine", DecayType::cosine},
                  {"linear", DecayType::linear},
                  {"1-sqrt", DecayType::one_minus_sqrt}})
        .resume_may_change();
    s.check([](const WarmupStableDecayConfig& c) -> std::optional<std::string> {
      if (!c.decay_steps || c.warmup_steps + c.cooldown_steps <= *c.decay_steps) {
        return std::nullopt;
      }
      return "warmup_steps (" + std::to_string(c.warmup_steps) + ") and cooldown_steps (" +
             std::to_string(c.cooldown_steps) + ") are more together than decay_steps (" +
             std::to_string(*c.decay_steps) + ")";
    });
  }
};

/// A warm-up, a plateau at lr, and a decay to min_lr_ratio at the end (Hu et al., 2024, MiniCPM;
/// transformers' get_wsd_schedule). Before the decay begins, it does not depend on when the run
/// ends. A run that is too short for both warm-up and decay shortens the decay.
class WarmupStableDecaySchedule : public WarmupSchedule<WarmupStableDecayConfig> {
 public:
  using WarmupSchedule::WarmupSchedule;

 private:
  double factor_after(int64_t step, int64_t total_steps) const override {
    const int64_t end = last_decay_step(config(), total_steps);
    const int64_t begin = std::max(config().warmup_steps, end - config().cooldown_steps);
    if (step <= begin) return 1;
    const double remaining = remaining_at(decay_progress(step, begin, end));
    return config().min_lr_ratio + (1 - config().min_lr_ratio) * remaining;
  }

  double remaining_at(double progress) const {
    switch (config().decay_type) {
      case DecayType::cosine:
        return 0.5 * (1 + std::cos(std::numbers::pi * progress));
      case DecayType::linear:
        return 1 - progress;
      case DecayType::one_minus_sqrt:
        return 1 - std::sqrt(progress);
    }
    return 0;
  }
};

REGISTER_LR_SCHEDULER("warmup_stable_decay", WarmupStableDecaySchedule);

}  // namespace
}  // namespace phalanx
