// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/decay_config.h"

#include <string>

#include "trainer/config/tree/schema.h"

namespace phalanx {

void DecayConfig::describe(config::Schema<DecayConfig>& s) {
  s.field("warmup_steps", &DecayConfig::warmup_steps, "linear warm-up from 0 to lr")
      .at_least(0)
      .count()
      .unit("steps");
  s.field("decay_steps", &DecayConfig::decay_steps,
          "step at which the decay ends, warm-up included; null: the run's last")
      .at_least(1)
      .count()
      .unit("steps")
      .resume_may_change();
  s.field("min_lr_ratio", &DecayConfig::min_lr_ratio, "learning rate at the end, as a share of lr")
      .in_range(0, 1)
      .resume_may_change();
  s.check([](const DecayConfig& c) -> std::optional<std::string> {
    if (!c.decay_steps || *c.decay_steps > c.warmup_steps) return std::nullopt;
    return "decay_steps (" + std::to_string(*c.decay_steps) +
           ") counts from the start of the run and must exceed warmup_steps (" +
           std::to_string(c.warmup_steps) + ")";
  });
}

}  // namespace phalanx
