// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx {

/// Base of every learning-rate schedule: a pure function of the step, so that it has no state to
/// save. Step numbers count from 1; the learning rate of step n is base_lr * factor(n, total).
class LrScheduler {
 public:
  virtual ~LrScheduler() = default;

  /// The factor for step `step` >= 1 of a run of `total_steps`.
  virtual double factor(int64_t step, int64_t total_steps) const = 0;

  /// Whether `factor` depends on the run's total steps. If so, a run whose length in steps is not
  /// known beforehand (max_seconds alone) is refused.
  virtual bool needs_total_steps() const = 0;
};

}  // namespace phalanx
