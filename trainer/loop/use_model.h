// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/loop/trainer_setup.h"
#include "trainer/step/pass_context.h"

namespace phalanx {

/// Calls `action` with the model in its mode for evaluation, without gradients; training's random
/// numbers stay as they were. All ranks call it.
void use_model(const PassContext& context, const PassWork& work, const LoadModel& action);

}  // namespace phalanx
