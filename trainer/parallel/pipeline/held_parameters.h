// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "trainer/parallel/pipeline/stages.h"
#include "trainer/ranks/ranks.h"

namespace phalanx::pipeline {

/// A parameter of the model, as one stage has it.
struct HeldParameter {
  StagedParameter parameter;
  bool is_here = false;
  at::Tensor without_elements = {};  ///< What stands for it on a stage that does not hold it [0].
  at::Tensor without_values = {};    ///< NaN in its shape, in the memory of one element: the same.

  /// Whether two stages hold it.
  bool is_shared() const { return parameter.stages.size() > 1; }
};

/// All parameters of the model, on this stage. Those of other stages become NaN in the module, and
/// lose their memory.
std::vector<HeldParameter> hold(const std::vector<StagedParameter>& parameters, int64_t stage);

/// Gives those of other stages gradients without elements: optimizers count their steps alike on
/// all stages.
void give_empty_gradients(std::span<const HeldParameter> parameters);

/// Calls `action` while the module has the values of all parameters, on every stage. All ranks call
/// it. Throws CommunicationError, and what `action` throws.
void with_all_parameters(std::span<const HeldParameter> parameters, const Ranks& ranks,
                         const std::function<void()>& action);

}  // namespace phalanx::pipeline
