// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "trainer/step/decision.h"

namespace phalanx {

class StepParts;

/// What a rank decides that begins a forward pass of a task's own step. `synchronize`: see
/// TrainingStep::run; it says nothing of a pass without gradients.
Decision begins_forward(bool has_gradients, bool synchronize);
/// The same of a backward pass.
Decision begins_backward();

/// Before a pass of a task's own step: throws std::logic_error on all ranks where some begin
/// another pass, or end the step. Without it they would wait for each other in other operations.
/// Nothing is compared where ranks share their samples: the stages of a pipeline are at other
/// passes at a time.
void require_same_pass(const StepParts& parts, int64_t step, const Decision& pass);

}  // namespace phalanx
