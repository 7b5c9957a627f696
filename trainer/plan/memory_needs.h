// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/api/model_base.h"
#include "trainer/api/optimizer.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/plan/run_plan.h"

namespace phalanx {

/// Refuses, before its memory is taken, a model whose parameters, gradients and optimizer state
/// cannot fit on this rank under any circumstances; what is needed besides (activations) is not
/// known yet. `is_double`: the model will be converted to double precision. Host memory only.
/// Throws UserError with the numbers and what would help.
void require_memory(const RunPlan& plan, ModelBase& model, const Optimizer& optimizer,
                    bool is_double, const World& world);

}  // namespace phalanx
