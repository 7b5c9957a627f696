// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/config/tree/schema.h"

namespace phalanx {

/// Declares the field `warmup_steps` of a schedule's config.
template <class Config>
void describe_warmup(config::Schema<Config>& s) {
  s.field("warmup_steps", &Config::warmup_steps, "linear warm-up from 0 to lr")
      .at_least(0)
      .count()
      .unit("steps");
}

/// Declares the fields `warmup_steps`, `decay_steps` and `min_lr_ratio` of a schedule that decays
/// to an end.
template <class Config>
void describe_decay(config::Schema<Config>& s) {
  describe_warmup(s);
  s.field("decay_steps", &Config::decay_steps,
          "step at which the decay ends, warm-up included; null: the run's last")
      .at_least(1)
      .count()
      .unit("steps")
      .resume_may_change();
  s.field("min_lr_ratio", &Config::min_lr_ratio, "learning rate at the end, as a share of lr")
      .in_range(0, 1)
      .resume_may_change();
  s.check([](const Config& c) -> std::optional<std::string> {
    if (!c.decay_steps || *c.decay_steps > c.warmup_steps) return std::nullopt;
    return "decay_steps (" + std::to_string(*c.decay_steps) +
           ") counts from the start of the run and must exceed warmup_steps (" +
           std::to_string(c.warmup_steps) + ")";
  });
}

}  // namespace phalanx
