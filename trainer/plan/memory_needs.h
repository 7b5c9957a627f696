// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/api/model_base.h"
#include "trainer/api/optimizer.h"
#include "trainer/config/tree/node.h"
#include "trainer/parallel/init_from_env.h"

namespace phalanx {

/// Refuses, before its memory is taken, a model whose parameters, gradients and optimizer state
/// cannot fit on this rank under any circumstances; what is needed besides (activations) is not
/// known yet. Host memory only. Throws UserError with the numbers and what would help.
void require_memory(const config::Node& resolved, ModelBase& model, const Optimizer& optimizer,
                    const World& world);

}  // namespace phalanx
