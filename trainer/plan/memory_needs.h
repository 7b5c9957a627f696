// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>

#include "trainer/api/model_base.h"
#include "trainer/api/optimizer.h"
#include "trainer/config/tree/node.h"
#include "trainer/plan/run_plan.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Optimizer::states_of, of the optimizer that moves the parameter.
using StatesOf = std::function<int64_t(const NamedParameter& parameter)>;

/// Refuses, before its memory is taken, a model whose parameters, gradients and optimizer state
/// cannot fit on this rank under any circumstances; what is needed besides (activations) is not
/// known yet. That is the memory of the host, or of the GPU that this rank computes on
/// (`device`), with the other ranks on it. `is_double`: the model will be converted to double
/// precision; `section`: its resolved section. Every rank calls it. Throws UserError with the
/// numbers, the largest tensor and the fields that set its size, and what would help.
void require_memory(const RunPlan& plan, ModelBase& model, const config::Node& section,
                    const StatesOf& states, bool is_double, const Ranks& ranks, at::Device device);

}  // namespace phalanx
