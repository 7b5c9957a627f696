// SPDX-License-Identifier: Apache-2.0
// Schedules: the one that a config without a choice takes, and three beside it.

#include <cstdint>
#include <optional>
#include <string>

#include "tests/trainer/loop/tiny.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/kinds.h"

namespace phalanx::tiny {
namespace {

template <class ConfigT>
class OfConfig : public Schedule {
 public:
  using Config = ConfigT;
  explicit OfConfig(const Config&) {}
};

struct WarmupConfig {
  int64_t warmup_steps = 0;

  static void describe(config::Schema<WarmupConfig>& s) {
    s.field("warmup_steps", &WarmupConfig::warmup_steps, "from 0 to lr")
        .at_least(0)
        .count()
        .unit("steps");
  }
};

struct DecayConfig {
  int64_t warmup_steps = 0;
  std::optional<int64_t> decay_steps;
  double min_lr_ratio = 0;

  static void describe(config::Schema<DecayConfig>& s) {
    s.field("warmup_steps", &DecayConfig::warmup_steps, "from 0 to lr")
        .at_least(0)
        .count()
        .unit("steps");
    s.field("decay_steps", &DecayConfig::decay_steps, "step at which the decay ends")
        .at_least(1)
        .count()
        .unit("steps");
    s.field("min_lr_ratio", &DecayConfig::min_lr_ratio, "share of lr at the end").in_range(0, 1);
    s.check([](const DecayConfig& c) -> std::optional<std::string> {
      if (!c.decay_steps || *c.decay_steps > c.warmup_steps) return std::nullopt;
      return "decay_steps (" + std::to_string(*c.decay_steps) + ") must exceed warmup_steps (" +
             std::to_string(c.warmup_steps) + ")";
    });
  }
};

REGISTER_LR_SCHEDULER("constant", OfConfig<WarmupConfig>);
REGISTER_LR_SCHEDULER("root", OfConfig<WarmupConfig>);
REGISTER_LR_SCHEDULER("slope", OfConfig<DecayConfig>);
REGISTER_LR_SCHEDULER("wave", OfConfig<DecayConfig>);

}  // namespace
}  // namespace phalanx::tiny
