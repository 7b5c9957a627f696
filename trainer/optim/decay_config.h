// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/config/tree/forward.h"

namespace phalanx {

/// What the schedules that decay to an end have in common.
struct DecayConfig {
  int64_t warmup_steps = 0;
  std::optional<int64_t> decay_steps;
  double min_lr_ratio = 0;

  static void describe(config::Schema<DecayConfig>& s);
};

/// The step at which a decay ends: the config's, or else the run's last.
template <class Config>
int64_t last_decay_step(const Config& config, int64_t total_steps) {
  return config.decay_steps.value_or(total_steps);
}

}  // namespace phalanx
