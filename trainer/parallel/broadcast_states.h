// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace torch::nn {
class Module;
}

namespace phalanx {

class Ranks;

/// The module's buffers, to be broadcast: the same memory, apart from autograd.
std::vector<at::Tensor> detached_buffers(torch::nn::Module& module);

/// The module's parameters, and buffers where `with_buffers`, in the same way.
std::vector<at::Tensor> detached_states(torch::nn::Module& module, bool with_buffers);

/// The values of rank `source` on every rank, many tensors at a time (250 MiB, as torch.distributed
/// has it).
void broadcast_tensors(const std::vector<at::Tensor>& tensors, const Ranks& ranks,
                       int64_t source = 0);

/// Rank 0's parameters, and buffers where `with_buffers`, on every rank.
void broadcast_states(torch::nn::Module& module, const Ranks& ranks, bool with_buffers);

}  // namespace phalanx
