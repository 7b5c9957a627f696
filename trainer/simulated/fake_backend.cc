// SPDX-License-Identifier: Apache-2.0
#include "trainer/simulated/fake_backend.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <map>
#include <utility>
#include <vector>

namespace phalanx {
namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

// Work that was over when it began.
class Completed final : public c10d::Work {
 public:
  Completed(int rank, c10d::OpType type, Tensors results)
      : Work(rank, type), results_(std::move(results)) {
    finish();
  }

  Tensors result() override { return results_; }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    auto future =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    future->markCompleted(c10::IValue(results_));
    return future;
  }

 private:
  Tensors results_;
};

int64_t bytes_of(const Tensors& tensors) {
  int64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

Reduction from_c10d(const c10d::ReduceOp& op) {
  switch (op) {
    case c10d::ReduceOp::SUM:
      return Reduction::sum;
    case c10d::ReduceOp::AVG:
      return Reduction::average;
    case c10d::ReduceOp::PRODUCT:
      return Reduction::product;
    case c10d::ReduceOp::MIN:
      return Reduction::minimum;
    case c10d::ReduceOp::MAX:
      return Reduction::maximum;
    default:
      TORCH_CHECK(false, "the fake backend does not know this ReduceOp: ", static_cast<int>(op));
  }
}

class FakeBackend final : public c10d::Backend {
 public:
  FakeBackend(std::string group, GroupPlace place, std::shared_ptr<CollectiveLog> log)
      : Backend(static_cast<int>(place.place), static_cast<int>(place.size)),
        group_(std::move(group)),
        log_(std::move(log)) {}

  const std::string getBackendName() const override { return "fake"; }

  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    const Reduction reduction = from_c10d(options.reduceOp);
    const at::AutoDispatchBelowADInplaceOrView raw;
    for (const auto& tensor : tensors) reduce(tensor, reduction);
    return log({.kind = CollectiveKind::all_reduce, .reduction = reduction}, tensors, tensors,
               c10d::OpType::ALLREDUCE);
  }

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return log({.kind = CollectiveKind::broadcast, .peer = options.rootRank}, tensors, tensors,
               c10d::OpType::BROADCAST);
  }

  WorkPointer allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions&) override {
    const at::AutoDispatchBelowADInplaceOrView raw;
    for (const auto& output : outputs.at(0)) output.copy_(inputs.at(0));
    return log({.kind = CollectiveKind::all_gather}, inputs, outputs.at(0),
               c10d::OpType::ALLGATHER);
  }

  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions&) override {
    const at::AutoDispatchBelowADInplaceOrView raw;
    replicate(output, output.is_alias_of(input) ? input.clone() : input);
    return log({.kind = CollectiveKind::all_gather}, {input}, {output},
               c10d::OpType::_ALLGATHER_BASE);
  }

  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override {
    const Reduction reduction = from_c10d(options.reduceOp);
    const at::AutoDispatchBelowADInplaceOrView raw;
    output.copy_(own_part(input).view_as(output));
    reduce(output, reduction);
    return log({.kind = CollectiveKind::reduce_scatter, .reduction = reduction}, {input}, {output},
               c10d::OpType::_REDUCE_SCATTER_BASE);
  }

  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input,
                            std::vector<int64_t>& output_parts, std::vector<int64_t>& input_parts,
                            const c10d::AllToAllOptions&) override {
    TORCH_CHECK(output_parts.empty() && input_parts.empty(),
                "the fake backend exchanges equal parts only");
    const at::AutoDispatchBelowADInplaceOrView raw;
    replicate(output, own_part(input));
    return log({.kind = CollectiveKind::all_to_all}, {input}, {output},
               c10d::OpType::ALLTOALL_BASE);
  }

  WorkPointer send(Tensors& tensors, int destination, int tag) override {
    sent_[tag].clear();
    for (const auto& tensor : tensors) sent_[tag].push_back(tensor.clone());
    return log({.kind = CollectiveKind::send, .peer = destination}, tensors, {},
               c10d::OpType::SEND);
  }

  WorkPointer recv(Tensors& tensors, int source, int tag) override {
    const at::AutoDispatchBelowADInplaceOrView raw;
    const auto sent = sent_.find(tag);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (sent == sent_.end()) {
        tensors[i].zero_();
      } else {
        tensors[i].copy_(sent->second.at(i));
      }
    }
    return log({.kind = CollectiveKind::receive, .peer = source}, {}, tensors, c10d::OpType::RECV);
  }

  WorkPointer barrier(const c10d::BarrierOptions&) override {
    return log({.kind = CollectiveKind::barrier}, {}, {}, c10d::OpType::BARRIER);
  }

 private:
  void reduce(const at::Tensor& tensor, Reduction reduction) const {
    if (reduction == Reduction::sum) tensor.mul_(size_);
    if (reduction == Reduction::product) tensor.pow_(size_);
  }

  void replicate(const at::Tensor& output, const at::Tensor& part) const {
    output.view({size_, part.numel()}).copy_(part.view({1, part.numel()}));
  }

  at::Tensor own_part(const at::Tensor& input) const {
    return input.view({size_, input.numel() / size_}).select(0, rank_);
  }

  WorkPointer log(Collective collective, const Tensors& inputs, const Tensors& outputs,
                  c10d::OpType type) {
    collective.group = group_;
    collective.input_bytes = bytes_of(inputs);
    collective.output_bytes = bytes_of(outputs);
    const Tensors& either = inputs.empty() ? outputs : inputs;
    if (!either.empty()) collective.dtype = either.front().scalar_type();
    log_->add(std::move(collective));
    return c10::make_intrusive<Completed>(rank_, type, outputs);
  }

  std::string group_;
  std::shared_ptr<CollectiveLog> log_;
  std::map<int, Tensors> sent_;  // last, by tag
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_fake_backend(std::string group, GroupPlace place,
                                                    std::shared_ptr<CollectiveLog> log) {
  log->join(group, place);
  return c10::make_intrusive<FakeBackend>(std::move(group), place, std::move(log));
}

}  // namespace phalanx
