// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "trainer/api/optimizer.h"

namespace phalanx {

/// The gradients of the parameters that have one.
std::vector<at::Tensor> gradients_of(const std::vector<NamedParameter>& parameters);

/// What gradients promote to, single precision at least: float16 ends at 65504
/// (FullyShardedDataParallel.clip_grad_norm_). Single precision without gradients.
at::ScalarType type_of_norm(const std::vector<at::Tensor>& gradients);

/// The 2-norm of a model's gradients, and what it was made of.
struct GradientNorm {
  at::Tensor total;  ///< The norm of the whole model, a scalar (no device stall).
  at::Tensor each;   ///< The norm of each gradient that this rank adds to it, in one dimension;
                     ///< undefined where it adds none.
  std::vector<size_t> positions;  ///< Where their parameters are in the list.
};

/// The norm of these parameters' gradients; only of those with `counts`, where it is given.
GradientNorm measure_gradients(const std::vector<NamedParameter>& parameters,
                               const std::function<bool(const NamedParameter&)>& counts = {});

/// The 2-norm of all gradients together, as a scalar tensor (no device stall). The same
/// operations as torch.nn.utils.get_total_norm, but in `type_of_norm` where gradients are of lower
/// precision. Zero without gradients.
at::Tensor gradient_norm(const std::vector<at::Tensor>& gradients);

/// Scales the gradients in place so that their norm is at most `max_norm` (> 0): the same
/// operations as torch.nn.utils.clip_grads_with_norm_, so the results are bitwise those of Python.
void clip_gradients_by_norm(const std::vector<at::Tensor>& gradients, double max_norm,
                            const at::Tensor& norm);

/// Clamps every element of the gradients to [-max_value, max_value], max_value > 0, in place.
void clip_gradients_by_value(const std::vector<at::Tensor>& gradients, double max_value);

}  // namespace phalanx
