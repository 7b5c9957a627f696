// SPDX-License-Identifier: Apache-2.0
// What ranks do with tensors together.

#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/collectives/start_operation.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

std::vector<at::Tensor> listed(const at::Tensor& tensor) { return {tensor}; }

}  // namespace

Pending Ranks::start_all_reduce(const at::Tensor& tensor, Reduction reduction) const {
  group_->end->require_open("all-reduce");
  const c10d::ReduceOp by = reduce_op("all-reduce", reduction, tensor.scalar_type());
  if (is_single_rank()) return {};
  return start_operation(
      *this, fmt::format("all-reduce ({} of {} elements)", to_string(reduction), tensor.numel()),
      [&](c10d::ProcessGroup& group) {
        auto tensors = listed(tensor);
        c10d::AllreduceOptions options;
        options.reduceOp = by;
        return group.allreduce(tensors, options);
      });
}

Pending Ranks::start_all_gather(const at::Tensor& output, const at::Tensor& input) const {
  group_->end->require_open("all-gather");
  if (is_single_rank()) {
    if (!output.is_same(input)) output.view(-1).copy_(input.view(-1));
    return {};
  }
  return start_operation(*this, fmt::format("all-gather (of {} elements)", input.numel()),
                         [&](c10d::ProcessGroup& group) {
                           at::Tensor to = output.view({-1});
                           at::Tensor from = input.view({-1});
                           return group._allgather_base(to, from);
                         });
}

Pending Ranks::start_reduce_scatter(const at::Tensor& output, const at::Tensor& input,
                                    Reduction reduction) const {
  group_->end->require_open("reduce-scatter");
  const c10d::ReduceOp by = reduce_op("reduce-scatter", reduction, input.scalar_type());
  if (is_single_rank()) {
    if (!output.is_same(input)) output.view(-1).copy_(input.view(-1));
    return {};
  }
  const std::string operation =
      fmt::format("reduce-scatter ({} of {} elements)", to_string(reduction), input.numel());
  const bool adds = reduction == Reduction::sum || reduction == Reduction::average;
  if (adds && input.is_cpu() && !group_->as_c10d) {
    // Gloo's own reduces everything everywhere, which sends each byte twice
    // (ProcessGroupGloo::_reduce_scatter_base); what the others have of this rank's part, sent
    // here and added up, is half of it.
    const at::Tensor parts = at::empty({world_size(), output.numel()}, input.options());
    Pending exchange = start_operation(*this, operation, [&](c10d::ProcessGroup& group) {
      at::Tensor to = parts.view({-1});
      at::Tensor from = input.view({-1});
      std::vector<int64_t> equal_parts;
      return group.alltoall_base(to, from, equal_parts, equal_parts);
    });
    auto shared = std::make_shared<Pending>(std::move(exchange));
    return Pending([shared, parts, output, input, reduction, ranks = world_size()] {
      shared->wait();
      at::Tensor sum = output.view({-1});
      at::sum_out(sum, parts, at::IntArrayRef{0}, /*keepdim=*/false, sum.scalar_type());
      if (reduction == Reduction::average) sum.div_(ranks);
    });
  }
  return start_operation(*this, operation, [&](c10d::ProcessGroup& group) {
    at::Tensor to = output.view({-1});
    at::Tensor from = input.view({-1});
    c10d::ReduceScatterOptions options;
    options.reduceOp = by;
    return group._reduce_scatter_base(to, from, options);
  });
}

Pending Ranks::start_broadcast(const at::Tensor& tensor, int64_t source) const {
  group_->end->require_open("broadcast");
  require_rank(*this, "broadcast", source);
  if (is_single_rank()) return {};
  return start_operation(
      *this, fmt::format("broadcast (of {} elements from rank {})", tensor.numel(), source),
      [&](c10d::ProcessGroup& group) {
        auto tensors = listed(tensor);
        c10d::BroadcastOptions options;
        options.rootRank = source;
        return group.broadcast(tensors, options);
      });
}

Pending Ranks::start_all_to_all(const at::Tensor& output, const at::Tensor& input) const {
  group_->end->require_open("all-to-all");
  if (is_single_rank()) {
    output.copy_(input);
    return {};
  }
  return start_operation(*this, fmt::format("all-to-all (of {} elements)", input.numel()),
                         [&](c10d::ProcessGroup& group) {
                           at::Tensor to = output.view({-1});
                           at::Tensor from = input.view({-1});
                           std::vector<int64_t> equal_parts;
                           return group.alltoall_base(to, from, equal_parts, equal_parts);
                         });
}

Pending Ranks::start_send(const at::Tensor& tensor, int64_t destination, int tag) const {
  group_->end->require_open("send");
  return start_operation(
      *this, fmt::format("send (of {} elements to rank {})", tensor.numel(), destination),
      [&](c10d::ProcessGroup& group) {
        auto tensors = listed(tensor);
        return group.send(tensors, static_cast<int>(destination), tag);
      });
}

Pending Ranks::start_receive(const at::Tensor& tensor, int64_t source, int tag) const {
  group_->end->require_open("receive");
  return start_operation(
      *this, fmt::format("receive (of {} elements from rank {})", tensor.numel(), source),
      [&](c10d::ProcessGroup& group) {
        auto tensors = listed(tensor);
        return group.recv(tensors, static_cast<int>(source), tag);
      });
}

void Ranks::all_reduce(const at::Tensor& tensor, Reduction reduction) const {
  start_all_reduce(tensor, reduction).wait();
}
void Ranks::all_gather(const at::Tensor& output, const at::Tensor& input) const {
  start_all_gather(output, input).wait();
}
void Ranks::reduce_scatter(const at::Tensor& output, const at::Tensor& input,
                           Reduction reduction) const {
  start_reduce_scatter(output, input, reduction).wait();
}
void Ranks::broadcast(const at::Tensor& tensor, int64_t source) const {
  start_broadcast(tensor, source).wait();
}
void Ranks::all_to_all(const at::Tensor& output, const at::Tensor& input) const {
  start_all_to_all(output, input).wait();
}
void Ranks::send(const at::Tensor& tensor, int64_t destination, int tag) const {
  start_send(tensor, destination, tag).wait();
}
void Ranks::receive(const at::Tensor& tensor, int64_t source, int tag) const {
  start_receive(tensor, source, tag).wait();
}

void Ranks::barrier() const {
  group_->end->require_open("barrier");
  if (is_single_rank()) return;
  start_operation(*this, "barrier", [](c10d::ProcessGroup& group) {
    c10d::BarrierOptions options;
    options.device = at::Device(at::kCPU);  // waits for the ranks, whatever their GPUs still do
    // ProcessGroup::barrier assigns to a static tensor (c10d/ProcessGroup.hpp): two threads, each
    // with a group of its own, would free it twice. Starting waits for nobody, so a lock may.
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    return group.barrier(options);
  }).wait();
}

}  // namespace phalanx
