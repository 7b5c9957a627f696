// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/broadcast_states.h"

#include <torch/csrc/distributed/c10d/comm.hpp>
#include <utility>

#include "trainer/api/modules.h"
#include "trainer/ranks/collectives/process_group.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

constexpr size_t kBytesAtATime = 250 * 1024 * 1024;

// With version counters of their own. A forward pass broadcasts buffers between an earlier one and
// its backward pass, which would find saved ones "modified by an inplace operation", as batch
// normalization saves its statistics (pytorch issue 22095).
std::vector<at::Tensor> apart_from_autograd(std::vector<at::Tensor> tensors) {
  for (auto& tensor : tensors) tensor = tensor.variable_data();
  return tensors;
}

}  // namespace

std::vector<at::Tensor> detached_buffers(torch::nn::Module& module) {
  return apart_from_autograd(modules::buffers(module));
}

std::vector<at::Tensor> detached_states(torch::nn::Module& module, bool with_buffers) {
  std::vector<at::Tensor> states = apart_from_autograd(modules::parameters(module));
  if (with_buffers) {
    for (auto& buffer : detached_buffers(module)) states.push_back(std::move(buffer));
  }
  return states;
}

void broadcast_tensors(const std::vector<at::Tensor>& tensors, const Ranks& ranks, int64_t source) {
  if (ranks.is_single_rank()) return;
  c10d::broadcast_coalesced(process_group(ranks), tensors, kBytesAtATime, static_cast<int>(source));
}

void broadcast_states(torch::nn::Module& module, const Ranks& ranks, bool with_buffers) {
  broadcast_tensors(detached_states(module, with_buffers), ranks);
}

}  // namespace phalanx
