// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/api/step_result.h"

namespace phalanx {

class TrainerBase;

/// What ends with a step that a guard has undone, as the result of a step that has ended says it:
/// an epoch or the training, where it was the last one of it.
StepResult end_of_undone_step(const TrainerBase& trainer);

}  // namespace phalanx
