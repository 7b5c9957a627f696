// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "trainer/loop/trainer_base.h"
#include "trainer/step/schedule_point.h"

namespace phalanx {

SchedulePoint TrainerBase::schedule_point() const {
  if (training_.step_lr_interval == LrInterval::step) {
    return {.at = state_.step, .end = total_steps_};
  }
  return {.at = state_.epoch + 1,
          .end = total_steps_ ? std::optional(epochs_of(*total_steps_)) : std::nullopt};
}

int64_t TrainerBase::epochs_of(int64_t steps) const {
  return (steps + steps_per_epoch() - 1) / steps_per_epoch();
}

}  // namespace phalanx
