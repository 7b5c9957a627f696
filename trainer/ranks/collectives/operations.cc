// SPDX-License-Identifier: Apache-2.0
// What ranks do with tensors together.

#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>

#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

#include "trainer/ranks/collectives/process_group.h"
#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/failures/gloo_error.h"
#include "trainer/ranks/ranks.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

using ProcessGroupPointer = c10::intrusive_ptr<c10d::ProcessGroup>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

c10d::ReduceOp to_c10d(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return c10d::ReduceOp::SUM;
    case Reduction::average:
      return c10d::ReduceOp::AVG;
    case Reduction::product:
      return c10d::ReduceOp::PRODUCT;
    case Reduction::minimum:
      return c10d::ReduceOp::MIN;
    case Reduction::maximum:
      return c10d::ReduceOp::MAX;
  }
  throw std::logic_error("an unknown Reduction");
}

const char* to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::average:
      return "average";
    case Reduction::product:
      return "product";
    case Reduction::minimum:
      return "minimum";
    case Reduction::maximum:
      return "maximum";
  }
  return "";
}

std::vector<at::Tensor> listed(const at::Tensor& tensor) { return {tensor}; }

}  // namespace

Pending::Pending() = default;
Pending::Pending(std::function<void()> wait) : wait_(std::move(wait)) {}
Pending::Pending(Pending&&) noexcept = default;
Pending& Pending::operator=(Pending&&) noexcept = default;
Pending::~Pending() = default;

void Pending::wait() {
  if (auto wait = std::exchange(wait_, nullptr)) wait();
}

const ProcessGroupPointer& process_group(const Ranks& ranks) {
  const Ranks::Group& group = ranks.group();
  group.end->require_open("process_group");
  if (!group.process_group) throw std::logic_error("a world of one has no process group");
  return group.process_group;
}

// The verb of every operation: starts it by `begin`, and gives errors of starting and of waiting
// their context.
template <class Begin>
Pending Ranks::start(std::string operation, Begin begin) const {
  auto fail = [group = group_, operation](const std::exception& error) {
    throw CommunicationError(fmt::format("{} of {} ranks failed in {}: {}", operation,
                                         group->world_size, group->activity->text(),
                                         plain_gloo_text(error_text(error))));
  };
  const ProcessGroupPointer& group = process_group(*this);
  WorkPointer work;
  group_->activity->begin_operation();
  try {
    work = begin(*group);
  } catch (const std::exception& error) {
    fail(error);
  }
  return Pending([work = std::move(work), fail = std::move(fail)] {
    try {
      work->wait();
    } catch (const std::exception& error) {
      fail(error);
    }
  });
}

Pending Ranks::start_all_reduce(const at::Tensor& tensor, Reduction reduction) const {
  group_->end->require_open("all-reduce");
  if (is_single_rank()) return {};
  return start(fmt::format("all-reduce ({} of {} elements)", to_string(reduction), tensor.numel()),
               [&](c10d::ProcessGroup& group) {
                 auto tensors = listed(tensor);
                 c10d::AllreduceOptions options;
                 options.reduceOp = to_c10d(reduction);
                 return group.allreduce(tensors, options);
               });
}

Pending Ranks::start_all_gather(const at::Tensor& output, const at::Tensor& input) const {
  group_->end->require_open("all-gather");
  if (is_single_rank()) {
    if (!output.is_same(input)) output.view(-1).copy_(input.view(-1));
    return {};
  }
  return start(fmt::format("all-gather (of {} elements)", input.numel()),
               [&](c10d::ProcessGroup& group) {
                 at::Tensor to = output.view({-1});
                 at::Tensor from = input.view({-1});
                 return group._allgather_base(to, from);
               });
}

Pending Ranks::start_reduce_scatter(const at::Tensor& output, const at::Tensor& input,
                                    Reduction reduction) const {
  group_->end->require_open("reduce-scatter");
  if (is_single_rank()) {
    if (!output.is_same(input)) output.view(-1).copy_(input.view(-1));
    return {};
  }
  const std::string operation =
      fmt::format("reduce-scatter ({} of {} elements)", to_string(reduction), input.numel());
  const bool adds = reduction == Reduction::sum || reduction == Reduction::average;
  if (adds && input.is_cpu()) {
    // Gloo's own reduces everything everywhere, which sends each byte twice
    // (ProcessGroupGloo::_reduce_scatter_base); what the others have of this rank's part, sent
    // here and added up, is half of it.
    const at::Tensor parts = at::empty({world_size(), output.numel()}, input.options());
    Pending exchange = start(operation, [&](c10d::ProcessGroup& group) {
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
  return start(operation, [&](c10d::ProcessGroup& group) {
    at::Tensor to = output.view({-1});
    at::Tensor from = input.view({-1});
    c10d::ReduceScatterOptions options;
    options.reduceOp = to_c10d(reduction);
    return group._reduce_scatter_base(to, from, options);
  });
}

Pending Ranks::start_broadcast(const at::Tensor& tensor, int64_t source) const {
  group_->end->require_open("broadcast");
  if (is_single_rank()) return {};
  return start(fmt::format("broadcast (of {} elements from rank {})", tensor.numel(), source),
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
  return start(fmt::format("all-to-all (of {} elements)", input.numel()),
               [&](c10d::ProcessGroup& group) {
                 at::Tensor to = output.view({-1});
                 at::Tensor from = input.view({-1});
                 std::vector<int64_t> equal_parts;
                 return group.alltoall_base(to, from, equal_parts, equal_parts);
               });
}

Pending Ranks::start_send(const at::Tensor& tensor, int64_t destination, int tag) const {
  group_->end->require_open("send");
  return start(fmt::format("send (of {} elements to rank {})", tensor.numel(), destination),
               [&](c10d::ProcessGroup& group) {
                 auto tensors = listed(tensor);
                 return group.send(tensors, static_cast<int>(destination), tag);
               });
}

Pending Ranks::start_receive(const at::Tensor& tensor, int64_t source, int tag) const {
  group_->end->require_open("receive");
  return start(fmt::format("receive (of {} elements from rank {})", tensor.numel(), source),
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
  start("barrier", [](c10d::ProcessGroup& group) {
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
