// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "trainer/api/named_values.h"

namespace phalanx {

class Stateful;

/// Base of every learning-rate schedule: a function of the step, and for some of what validations
/// have given. Step numbers count from 1; the learning rate of step n is base_lr * factor(n,
/// total). With training.step_lr_interval: epoch, n and total count epochs, n from 1 as well.
class LrScheduler {
 public:
  virtual ~LrScheduler() = default;

  /// The factor for step `step` >= 1 of a run of `total_steps`.
  virtual double factor(int64_t step, int64_t total_steps) const = 0;

  /// Whether `factor` depends on the run's total steps. If so, a run whose length in steps is not
  /// known beforehand (max_seconds alone) is refused.
  virtual bool needs_total_steps() const = 0;

  /// Takes the values of a validation, on all ranks alike. Optional.
  virtual void validated(const NamedValues& /*values*/) {}

  /// What checkpoints keep of it; it lives as long as the schedule. Optional; nullptr: `factor` is
  /// a pure function.
  virtual Stateful* kept_state() { return nullptr; }
};

}  // namespace phalanx
