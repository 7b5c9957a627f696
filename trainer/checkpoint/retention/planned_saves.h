// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx {

/// The saves that a run still makes, as far as steps decide: those that `every` divides, and the
/// last.
struct PlannedSaves {
  int64_t after = 0;     ///< The step that the run has reached.
  int64_t last = 0;      ///< The step that it ends with; not above `after`: no saves.
  int64_t every = 1;     ///< >= 1.
  bool are_all = false;  ///< No others follow, by time or by validation.

  int64_t count() const;
  /// How many of them have a step that n (>= 1) divides.
  int64_t divisible_by(int64_t n) const;
  /// The last k (>= 1) of them, or all where they are fewer.
  PlannedSaves newest(int64_t k) const;
};

}  // namespace phalanx
