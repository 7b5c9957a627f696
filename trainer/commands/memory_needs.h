// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/config/node.h"
#include "trainer/core/model_base.h"
#include "trainer/core/optimizer.h"
#include "trainer/parallel/init_from_env.h"

namespace phalanx {

/// Refuses, before its memory is taken, a model whose parameters, gradients and optimizer state
/// cannot fit on this rank under any circumstances; what is needed besides (activations) is not
/// known yet. Host memory only. Throws UserError with the numbers and what would help.
void require_memory(const config::Node& resolved, ModelBase& model, const Optimizer& optimizer,
                    const World& world);

}  // namespace phalanx
