// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/coalesced.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "trainer/ranks/collectives/start_operation.h"

namespace phalanx {
namespace {

using Tensors = std::vector<at::Tensor>;

void require_one_dtype(std::string_view operation, const Tensors& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (tensor.scalar_type() == tensors[0].scalar_type()) continue;
    throw std::invalid_argument(
        fmt::format("{}: the tensors of one operation have one dtype, and not {} and {}", operation,
                    c10::toString(tensors[0].scalar_type()), c10::toString(tensor.scalar_type())));
  }
}

void require_pairs(std::string_view operation, const Tensors& wholes, const Tensors& parts,
                   const Ranks& ranks) {
  if (wholes.size() != parts.size()) {
    throw std::invalid_argument(
        fmt::format("{}: {} tensors belong to {}", operation, wholes.size(), parts.size()));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (wholes[i].numel() == parts[i].numel() * ranks.world_size()) continue;
    throw std::invalid_argument(
        fmt::format("{}: tensor {} has {} elements for {} ranks with {} each", operation, i,
                    wholes[i].numel(), ranks.world_size(), parts[i].numel()));
  }
  require_one_dtype(operation, wholes);
  require_one_dtype(operation, parts);
}

Tensors flat(const Tensors& tensors) {
  Tensors result;
  for (const at::Tensor& tensor : tensors) result.push_back(tensor.view({-1}));
  return result;
}

}  // namespace

Pending start_all_reduce_coalesced(const Ranks& ranks, const Tensors& tensors,
                                   Reduction reduction) {
  require_open(ranks, "all-reduce");
  require_one_dtype("all-reduce", tensors);
  if (tensors.empty()) return {};
  const c10d::ReduceOp by = reduce_op("all-reduce", reduction, tensors[0].scalar_type());
  if (ranks.is_single_rank()) return {};
  return start_operation(
      ranks, fmt::format("all-reduce ({} of {} tensors)", to_string(reduction), tensors.size()),
      [&](c10d::ProcessGroup& group) {
        Tensors each = tensors;
        c10d::AllreduceCoalescedOptions options;
        options.reduceOp = by;
        return group.allreduce_coalesced(each, options);
      });
}

Pending start_all_gather_coalesced(const Ranks& ranks, const Tensors& outputs,
                                   const Tensors& inputs) {
  require_open(ranks, "all-gather");
  require_pairs("all-gather", outputs, inputs, ranks);
  if (inputs.empty()) return {};
  if (ranks.is_single_rank()) {
    for (size_t i = 0; i < inputs.size(); ++i) ranks.all_gather(outputs[i], inputs[i]);
    return {};
  }
  return start_operation(ranks, fmt::format("all-gather (of {} tensors)", inputs.size()),
                         [&](c10d::ProcessGroup& group) {
                           Tensors to = flat(outputs);
                           Tensors from = flat(inputs);
                           return group.allgather_into_tensor_coalesced(to, from);
                         });
}

void all_reduce_coalesced(const Ranks& ranks, const Tensors& tensors, Reduction reduction) {
  start_all_reduce_coalesced(ranks, tensors, reduction).wait();
}

void all_gather_coalesced(const Ranks& ranks, const Tensors& outputs, const Tensors& inputs) {
  start_all_gather_coalesced(ranks, outputs, inputs).wait();
}

void reduce_scatter_coalesced(const Ranks& ranks, const Tensors& outputs, const Tensors& inputs,
                              Reduction reduction) {
  require_pairs("reduce-scatter", inputs, outputs, ranks);
  // Together on the way: Gloo's own form sends each byte twice (Ranks::reduce_scatter).
  std::vector<Pending> pending;
  for (size_t i = 0; i < inputs.size(); ++i) {
    pending.push_back(ranks.start_reduce_scatter(outputs[i], inputs[i], reduction));
  }
  for (Pending& each : pending) each.wait();
}

}  // namespace phalanx
