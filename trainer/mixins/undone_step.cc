// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/undone_step.h"

#include "trainer/loop/trainer_base.h"

namespace phalanx {

StepResult end_of_undone_step(const TrainerBase& trainer) {
  State after = trainer.state();
  StepResult result;
  result.ends_epoch = after.epoch_samples >= trainer.samples_an_epoch();
  if (result.ends_epoch) ++after.epoch;
  result.ends_training = trainer.training().limit_reached(after);
  return result;
}

}  // namespace phalanx
