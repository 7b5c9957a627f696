// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace phalanx {

/// Whether step `step` >= 1 is one of the first `warmup_steps`.
inline bool in_warmup(int64_t step, int64_t warmup_steps) { return step <= warmup_steps; }

/// The factor inside a linear warm-up: 1/warmup_steps at step 1, 1 at step warmup_steps.
inline double warmup_factor(int64_t step, int64_t warmup_steps) {
  return static_cast<double>(step) / static_cast<double>(warmup_steps);
}

/// How far a decay has come after the warm-up: 0 at step warmup_steps, 1 from last_step on.
inline double decay_progress(int64_t step, int64_t warmup_steps, int64_t last_step) {
  if (step >= last_step) return 1;
  return static_cast<double>(step - warmup_steps) / static_cast<double>(last_step - warmup_steps);
}

}  // namespace phalanx
