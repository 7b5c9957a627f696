// SPDX-License-Identifier: Apache-2.0
#include "trainer/simulated/delayed_backend.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/simulated/timer.h"

namespace phalanx {
namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using FuturePointer = c10::intrusive_ptr<c10::ivalue::Future>;
using Clock = Timer::Clock;

constexpr const char* kVariable = "PHALANX_SIMULATED_LATENCY_MS";

// Work that is not over before its time.
class DelayedWork final : public c10d::Work {
 public:
  DelayedWork(WorkPointer work, Clock::time_point earliest, std::shared_ptr<Timer> timer)
      : Work(-1, work->retrieveOpType()),
        work_(std::move(work)),
        earliest_(earliest),
        timer_(std::move(timer)) {}

  bool isCompleted() override { return work_->isCompleted() && Clock::now() >= earliest_; }
  bool isSuccess() const override { return work_->isSuccess(); }
  std::exception_ptr exception() const override { return work_->exception(); }
  int sourceRank() const override { return work_->sourceRank(); }
  Tensors result() override { return work_->result(); }
  void synchronize() override { work_->synchronize(); }
  void abort() override { work_->abort(); }
  uint64_t getSequencenumber() const override { return work_->getSequencenumber(); }

  bool wait(std::chrono::milliseconds timeout) override {
    const bool done = work_->wait(timeout);
    std::this_thread::sleep_until(earliest_);
    return done;
  }

  // What DDP waits for instead of wait().
  FuturePointer getFuture() override {
    const FuturePointer real = work_->getFuture();
    auto late = c10::make_intrusive<c10::ivalue::Future>(real->elementType());
    real->addCallback([late, earliest = earliest_, timer = timer_](c10::ivalue::Future& done) {
      if (done.hasError()) return late->setError(done.exception_ptr());
      timer->at(earliest, [late, value = done.value()] { late->markCompleted(value); });
    });
    return late;
  }

 private:
  WorkPointer work_;
  Clock::time_point earliest_;
  std::shared_ptr<Timer> timer_;
};

class DelayedBackend final : public c10d::Backend {
 public:
  DelayedBackend(c10::intrusive_ptr<c10d::Backend> backend, std::chrono::microseconds latency)
      : Backend(backend->getRank(), backend->getSize()),
        backend_(std::move(backend)),
        latency_(latency) {}

  const std::string getBackendName() const override { return backend_->getBackendName(); }
  void setTimeout(std::chrono::milliseconds timeout) override { backend_->setTimeout(timeout); }
  void setSequenceNumberForGroup() override { backend_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override { return backend_->getSequenceNumberForGroup(); }
  void abort() override { backend_->abort(); }
  void shutdown() override { backend_->shutdown(); }

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return late([&] { return backend_->broadcast(tensors, options); });
  }
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return late([&] { return backend_->allreduce(tensors, options); });
  }
  WorkPointer allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions& options) override {
    return late([&] { return backend_->allgather(outputs, inputs, options); });
  }
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override {
    return late([&] { return backend_->_allgather_base(output, input, options); });
  }
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override {
    return late([&] { return backend_->_reduce_scatter_base(output, input, options); });
  }
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input,
                            std::vector<int64_t>& output_parts, std::vector<int64_t>& input_parts,
                            const c10d::AllToAllOptions& options) override {
    return late(
        [&] { return backend_->alltoall_base(output, input, output_parts, input_parts, options); });
  }
  WorkPointer send(Tensors& tensors, int destination, int tag) override {
    return late([&] { return backend_->send(tensors, destination, tag); });
  }
  WorkPointer recv(Tensors& tensors, int source, int tag) override {
    return late([&] { return backend_->recv(tensors, source, tag); });
  }
  WorkPointer barrier(const c10d::BarrierOptions& options) override {
    return late([&] { return backend_->barrier(options); });
  }

 private:
  template <class Begin>
  WorkPointer late(Begin begin) {
    const Clock::time_point earliest = Clock::now() + latency_;
    return c10::make_intrusive<DelayedWork>(begin(), earliest, timer_);
  }

  c10::intrusive_ptr<c10d::Backend> backend_;
  std::chrono::microseconds latency_;
  std::shared_ptr<Timer> timer_ = std::make_shared<Timer>();
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> delayed(c10::intrusive_ptr<c10d::Backend> backend,
                                          std::chrono::microseconds latency) {
  if (latency.count() == 0) return backend;
  return c10::make_intrusive<DelayedBackend>(std::move(backend), latency);
}

std::chrono::microseconds simulated_latency() {
  const char* const set = std::getenv(kVariable);
  const std::string_view text = set == nullptr ? "" : set;
  if (text.empty()) return {};
  constexpr double kMax = 60'000;
  double milliseconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  if (error != std::errc() || end != text.data() + text.size() ||
      !(milliseconds >= 0 && milliseconds <= kMax)) {
    throw UserError(fmt::format("{} is '{}', but must be a number of milliseconds from 0 to {}",
                                kVariable, text, kMax));
  }
  constexpr double kMicroseconds = 1000;
  return std::chrono::microseconds(std::llround(milliseconds * kMicroseconds));
}

}  // namespace phalanx
