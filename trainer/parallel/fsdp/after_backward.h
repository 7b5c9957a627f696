// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace phalanx::fsdp {

/// Has autograd call `function` when the gradients of all `inputs` that need one are there, which
/// is when the backward pass of what is computed from them is over (torch/distributed/fsdp:
/// RegisterPostBackwardFunction). Such inputs are replaced by views of themselves; without one,
/// nothing is called. Autograd's graph holds the function.
void call_after_backward(std::vector<at::Tensor>& inputs, std::function<void()> function);

/// Has autograd call `function` once, when the backward pass that runs now is over. From within a
/// backward pass only.
void call_at_end_of_backward(std::function<void()> function);

}  // namespace phalanx::fsdp
