// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/device_backend.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/ivalue.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "tests/test_device/aliases.h"
#include "tests/test_device/races.h"
#include "tests/test_device/streams.h"
#include "tests/test_device/timeline.h"
#include "tests/test_device/worker.h"

namespace phalanx::test_device {
namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

class Work final : public c10d::Work {
 public:
  Work(int rank, c10d::OpType type, c10::Stream stream, Tensors results, Tensors kept,
       std::shared_future<void> end)
      : c10d::Work(rank, type),
        device_(stream.device()),
        event_(kType),
        end_(std::move(end)),
        results_(std::move(results)),
        kept_(std::move(kept)) {
    event_.record(stream);
    const auto list = c10::ListType::create(c10::TensorType::get());
    future_ = c10::make_intrusive<c10::ivalue::Future>(list, std::vector<c10::Device>{device_});
    // At once, as NCCL's: who waits for the future waits by its events.
    const c10::StreamGuard guard(stream);
    future_->markCompleted(c10::IValue(results_));
  }

  bool isCompleted() override {
    return end_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  bool isSuccess() const override { return true; }
  void synchronize() override {
    event_.block(current_stream(device_.index()));
    kept_.clear();  // NCCL's work holds its tensors until then
  }
  bool wait(std::chrono::milliseconds) override {
    synchronize();
    return true;
  }
  Tensors result() override { return results_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  c10::Device device_;
  c10::Event event_;
  std::shared_future<void> end_;
  Tensors results_;
  Tensors kept_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

class DeviceBackend final : public c10d::Backend {
 public:
  explicit DeviceBackend(c10::intrusive_ptr<c10d::Backend> carrier)
      : Backend(carrier->getRank(), carrier->getSize()), carrier_(std::move(carrier)) {}

  const std::string getBackendName() const override { return "test_device"; }
  void setTimeout(std::chrono::milliseconds timeout) override { carrier_->setTimeout(timeout); }
  void abort() override { carrier_->abort(); }
  void shutdown() override { carrier_->shutdown(); }

  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return start({"all-reduce", c10d::OpType::ALLREDUCE, tensors, tensors},
                 [=, this, average = is_average(options)](Tensors&, Tensors& to) {
                   carrier_->allreduce(to, as_sum(options))->wait();
                   if (average) divide(to);
                 });
  }
  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    const bool sends = options.rootRank == getRank();
    return start({"broadcast", c10d::OpType::BROADCAST, sends ? tensors : Tensors(),
                  sends ? Tensors() : tensors, tensors},
                 [=, this](Tensors& from, Tensors& to) {
                   carrier_->broadcast(sends ? from : to, options)->wait();
                 });
  }
  WorkPointer allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions& options) override {
    return start({"all-gather", c10d::OpType::ALLGATHER, inputs, outputs.at(0)},
                 [=, this](Tensors& from, Tensors& to) {
                   std::vector<Tensors> all{to};
                   carrier_->allgather(all, from, options)->wait();
                 });
  }
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override {
    return start({"all-gather", c10d::OpType::_ALLGATHER_BASE, {input}, {output}},
                 [=, this](Tensors& from, Tensors& to) {
                   carrier_->_allgather_base(to[0], from[0], options)->wait();
                 });
  }
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override {
    return start({"reduce-scatter", c10d::OpType::_REDUCE_SCATTER_BASE, {input}, {output}},
                 [=, this, average = is_average(options)](Tensors& from, Tensors& to) {
                   carrier_->_reduce_scatter_base(to[0], from[0], as_sum(options))->wait();
                   if (average) divide(to);
                 });
  }
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& received,
                            std::vector<int64_t>& sent,
                            const c10d::AllToAllOptions& options) override {
    return start({"all-to-all", c10d::OpType::ALLTOALL_BASE, {input}, {output}},
                 [=, this](Tensors& from, Tensors& to) {
                   auto sizes_to = received;
                   auto sizes_from = sent;
                   carrier_->alltoall_base(to[0], from[0], sizes_to, sizes_from, options)->wait();
                 });
  }
  WorkPointer send(Tensors& tensors, int to, int tag) override {
    return start({"send", c10d::OpType::SEND, tensors, {}},
                 [=, this](Tensors& from, Tensors&) { carrier_->send(from, to, tag)->wait(); });
  }
  WorkPointer recv(Tensors& tensors, int from, int tag) override {
    return start({"receive", c10d::OpType::RECV, {}, tensors},
                 [=, this](Tensors&, Tensors& to) { carrier_->recv(to, from, tag)->wait(); });
  }
  WorkPointer barrier(const c10d::BarrierOptions& options) override {
    return carrier_->barrier(options);
  }

 private:
  struct Collective {
    const char* name;
    c10d::OpType type;
    Tensors inputs;
    Tensors outputs;
    std::optional<Tensors> results = {};  // none: the outputs
  };

  template <class Options>
  static bool is_average(const Options& options) {
    return options.reduceOp == c10d::ReduceOp::AVG;
  }
  // Gloo knows no average.
  template <class Options>
  static Options as_sum(Options options) {
    if (is_average(options)) options.reduceOp = c10d::ReduceOp::SUM;
    return options;
  }
  void divide(Tensors& tensors) const {
    for (at::Tensor& tensor : tensors) tensor.div_(getSize());
  }

  static c10::Device device_of(const Collective& collective) {
    const Tensors& some = collective.outputs.empty() ? collective.inputs : collective.outputs;
    const c10::Device device = some.at(0).device();
    for (const Tensors* list : {&collective.inputs, &collective.outputs}) {
      for (const at::Tensor& tensor : *list) {
        TORCH_CHECK(tensor.device() == device, collective.name, ": tensors of several devices");
        TORCH_CHECK(tensor.is_contiguous(), collective.name, ": tensors must be contiguous");
      }
    }
    return device;
  }

  template <class Carry>
  WorkPointer start(Collective collective, Carry carry) {
    const c10::Device device = device_of(collective);
    const c10::DeviceGuard guard(device);
    if (!stream_) stream_ = pool_stream(device.index(), /*high_priority=*/true);
    const uint32_t number = number_of(*stream_);
    c10::Event ready(kType);
    ready.record(current_stream(device.index()));
    ready.block(*stream_);
    // The worker has those of this stream in order; what else comes before is over first.
    finish_late_work(clock_of(number).without(number));
    const Moment moment = enqueue(number);
    Tensors from;
    Tensors to;
    for (const at::Tensor& tensor : collective.inputs) {
      note_access(number, tensor, Access::reads, collective.name);
      from.push_back(cpu_alias(tensor));
    }
    for (const at::Tensor& tensor : collective.outputs) {
      note_access(number, tensor, Access::writes, collective.name);
      to.push_back(cpu_alias(tensor));
    }
    const std::shared_future<void> end = worker_.start([carry, from, to]() mutable {
      const at::AutoDispatchBelowADInplaceOrView below;
      carry(from, to);
    });
    add_late_work(moment, [end] { end.get(); });
    Tensors kept = collective.inputs;
    kept.insert(kept.end(), collective.outputs.begin(), collective.outputs.end());
    return c10::make_intrusive<Work>(getRank(), collective.type, *stream_,
                                     collective.results.value_or(collective.outputs),
                                     std::move(kept), end);
  }

  c10::intrusive_ptr<c10d::Backend> carrier_;
  std::optional<c10::Stream> stream_;
  Worker worker_;  // the first to end: its jobs use the rest
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_device_backend(c10::intrusive_ptr<c10d::Backend> carrier) {
  return c10::make_intrusive<DeviceBackend>(std::move(carrier));
}

}  // namespace phalanx::test_device
