// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/rendezvous/checked_backend.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/base/xxh3.h"

namespace phalanx {
namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

constexpr const char* kVariable = "PHALANX_CHECK_COLLECTIVES";

// By c10d::ReduceOp::RedOpType.
constexpr std::array kReductions{"sum",         "average",    "product",     "minimum",   "maximum",
                                 "bitwise and", "bitwise or", "bitwise xor", "scaled sum"};

std::string text_of(const c10d::ReduceOp& reduction) {
  const auto index = static_cast<size_t>(reduction.op_);
  return index < kReductions.size() ? kReductions.at(index) : "an unknown reduction";
}

// "[2, 3] of Float".
std::string text_of(at::IntArrayRef sizes, at::ScalarType dtype) {
  return fmt::format("[{}] of {}", fmt::join(sizes.begin(), sizes.end(), ", "),
                     c10::toString(dtype));
}

std::string text_of(const Tensors& tensors) {
  std::string text;
  for (const at::Tensor& tensor : tensors) {
    if (!text.empty()) text += " and ";
    text += text_of(tensor.sizes(), tensor.scalar_type());
  }
  return text;
}

int64_t row_count(const at::Tensor& tensor) { return tensor.dim() == 0 ? 1 : tensor.size(0); }

// Rows for each rank; none are named where they are the same.
std::vector<int64_t> parts_of(const at::Tensor& tensor, const std::vector<int64_t>& parts,
                              int ranks) {
  if (!parts.empty()) return parts;
  return std::vector<int64_t>(static_cast<size_t>(ranks), row_count(tensor) / ranks);
}

class CheckedBackend final : public c10d::Backend {
 public:
  CheckedBackend(c10::intrusive_ptr<c10d::Backend> backend,
                 c10::intrusive_ptr<c10d::Backend> exchange)
      : Backend(backend->getRank(), backend->getSize()),
        backend_(std::move(backend)),
        exchange_(std::move(exchange)) {}

  const std::string getBackendName() const override { return backend_->getBackendName(); }
  c10::intrusive_ptr<Options> getBackendOptions() override { return backend_->getBackendOptions(); }
  void setTimeout(std::chrono::milliseconds timeout) override { backend_->setTimeout(timeout); }
  void setSequenceNumberForGroup() override { backend_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override { return backend_->getSequenceNumberForGroup(); }
  bool supportsCoalescing() const override { return backend_->supportsCoalescing(); }
  void startCoalescing() override { backend_->startCoalescing(); }
  WorkPointer endCoalescing() override { return backend_->endCoalescing(); }
  void abort() override {
    exchange_->abort();
    backend_->abort();
  }
  void shutdown() override {
    exchange_->shutdown();
    backend_->shutdown();
  }

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    require_alike(
        fmt::format("broadcast (from rank {}) of {}", options.rootRank, text_of(tensors)));
    return backend_->broadcast(tensors, options);
  }
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    require_alike(
        fmt::format("all-reduce ({}) of {}", text_of(options.reduceOp), text_of(tensors)));
    return backend_->allreduce(tensors, options);
  }
  WorkPointer allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    require_alike(
        fmt::format("sparse all-reduce ({}) of {}", text_of(options.reduceOp), text_of(tensors)));
    return backend_->allreduce_sparse(tensors, options);
  }
  WorkPointer allreduce_coalesced(Tensors& tensors,
                                  const c10d::AllreduceCoalescedOptions& options) override {
    require_alike(
        fmt::format("all-reduce ({}) of {}", text_of(options.reduceOp), text_of(tensors)));
    return backend_->allreduce_coalesced(tensors, options);
  }
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    require_alike(fmt::format("reduce ({}, to rank {}) of {}", text_of(options.reduceOp),
                              options.rootRank, text_of(tensors)));
    return backend_->reduce(tensors, options);
  }
  WorkPointer allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions& options) override {
    require_alike(fmt::format("all-gather of {}", text_of(inputs)));
    return backend_->allgather(outputs, inputs, options);
  }
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override {
    require_alike(fmt::format("all-gather of {}", text_of({input})));
    return backend_->_allgather_base(output, input, options);
  }
  WorkPointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) override {
    require_alike(fmt::format("all-gather of {}", text_of(inputs)));
    return backend_->allgather_into_tensor_coalesced(outputs, inputs, options);
  }
  WorkPointer gather(std::vector<Tensors>& outputs, Tensors& inputs,
                     const c10d::GatherOptions& options) override {
    require_alike(fmt::format("gather (to rank {}) of {}", options.rootRank, text_of(inputs)));
    return backend_->gather(outputs, inputs, options);
  }
  WorkPointer scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                      const c10d::ScatterOptions& options) override {
    require_alike(fmt::format("scatter (from rank {}) of {}", options.rootRank, text_of(outputs)));
    return backend_->scatter(outputs, inputs, options);
  }
  WorkPointer reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                             const c10d::ReduceScatterOptions& options) override {
    std::string all;
    for (const Tensors& each : inputs) all += text_of(each);
    require_alike(fmt::format("reduce-scatter ({}) of {}", text_of(options.reduceOp), all));
    return backend_->reduce_scatter(outputs, inputs, options);
  }
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override {
    require_alike(
        fmt::format("reduce-scatter ({}) of {}", text_of(options.reduceOp), text_of({input})));
    return backend_->_reduce_scatter_base(output, input, options);
  }
  WorkPointer reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::ReduceScatterOptions& options) override {
    require_alike(
        fmt::format("reduce-scatter ({}) of {}", text_of(options.reduceOp), text_of(inputs)));
    return backend_->reduce_scatter_tensor_coalesced(outputs, inputs, options);
  }
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input,
                            std::vector<int64_t>& output_parts, std::vector<int64_t>& input_parts,
                            const c10d::AllToAllOptions& options) override {
    const at::IntArrayRef row = input.dim() == 0 ? input.sizes() : input.sizes().slice(1);
    require_alike(fmt::format("all-to-all of rows {}", text_of(row, input.scalar_type())));
    require_parts(parts_of(output, output_parts, size_), parts_of(input, input_parts, size_));
    return backend_->alltoall_base(output, input, output_parts, input_parts, options);
  }
  WorkPointer alltoall(Tensors& outputs, Tensors& inputs,
                       const c10d::AllToAllOptions& options) override {
    require_alike(fmt::format("all-to-all of {} tensors", inputs.size()));
    return backend_->alltoall(outputs, inputs, options);
  }
  WorkPointer barrier(const c10d::BarrierOptions& options) override {
    require_alike("barrier");
    return backend_->barrier(options);
  }
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override {
    backend_->monitoredBarrier(options, wait_all_ranks);
  }
  WorkPointer send(Tensors& tensors, int destination, int tag) override {
    return backend_->send(tensors, destination, tag);
  }
  WorkPointer recv(Tensors& tensors, int source, int tag) override {
    return backend_->recv(tensors, source, tag);
  }
  WorkPointer recvAnysource(Tensors& tensors, int tag) override {
    return backend_->recvAnysource(tensors, tag);
  }

 private:
  // Every rank's, by rank.
  at::Tensor gathered(at::Tensor own) {
    at::Tensor all = at::empty({size_ * own.numel()}, own.options());
    exchange_->_allgather_base(all, own)->wait();
    return all.view({size_, own.numel()});
  }

  std::vector<std::vector<int64_t>> gathered(const std::vector<int64_t>& own) {
    at::Tensor numbers = at::empty({static_cast<int64_t>(own.size())}, at::kLong);
    std::ranges::copy(own, numbers.mutable_data_ptr<int64_t>());
    const at::Tensor all = gathered(numbers);
    std::vector<std::vector<int64_t>> rows;
    for (int rank = 0; rank < size_; ++rank) {
      const auto* const row = all.const_data_ptr<int64_t>() + rank * numbers.numel();
      rows.emplace_back(row, row + numbers.numel());
    }
    return rows;
  }

  std::vector<std::string> gathered(const std::string& own, int64_t longest) {
    at::Tensor bytes = at::zeros({longest}, at::kByte);
    std::memcpy(bytes.mutable_data_ptr<uint8_t>(), own.data(), own.size());
    const at::Tensor all = gathered(bytes);
    std::vector<std::string> texts;
    for (int rank = 0; rank < size_; ++rank) {
      const auto* const text =
          reinterpret_cast<const char*>(all.const_data_ptr<uint8_t>() + rank * longest);
      texts.emplace_back(text, ::strnlen(text, static_cast<size_t>(longest)));
    }
    return texts;
  }

  // Digests are as long on all ranks, and suffice where all is well.
  void require_alike(const std::string& call) {
    const std::lock_guard lock(mutex_);
    const std::string digest = xxh3_digits64(call);
    const auto digests = gathered(digest, static_cast<int64_t>(digest.size()));
    if (std::ranges::count(digests, digest) == size_) return;
    const auto sizes = gathered(std::vector<int64_t>{static_cast<int64_t>(call.size())});
    const auto calls = gathered(call, std::ranges::max_element(sizes)->front());
    for (size_t rank = 1; rank < calls.size(); ++rank) {
      if (calls[rank] == calls[0]) continue;
      throw std::invalid_argument(
          fmt::format("rank 0 calls {}, and rank {} {}", calls[0], rank, calls[rank]));
    }
  }

  // Of all-to-all: what each rank sends each other is what that one expects.
  void require_parts(const std::vector<int64_t>& output_parts,
                     const std::vector<int64_t>& input_parts) {
    const auto ranks = static_cast<size_t>(size_);
    if (input_parts.size() != ranks || output_parts.size() != ranks) {
      throw std::invalid_argument(fmt::format("all-to-all: {} and {} parts for {} ranks",
                                              input_parts.size(), output_parts.size(), ranks));
    }
    const std::lock_guard lock(mutex_);
    std::vector<int64_t> own = input_parts;
    own.insert(own.end(), output_parts.begin(), output_parts.end());
    const auto parts = gathered(own);
    for (size_t from = 0; from < ranks; ++from) {
      for (size_t to = 0; to < ranks; ++to) {
        const int64_t sent = parts[from].at(to);
        const int64_t expected = parts[to].at(ranks + from);
        if (sent == expected) continue;
        throw std::invalid_argument(
            fmt::format("all-to-all: rank {} sends {} rows to rank {}, which expects {}", from,
                        sent, to, expected));
      }
    }
  }

  c10::intrusive_ptr<c10d::Backend> backend_;
  c10::intrusive_ptr<c10d::Backend> exchange_;
  std::mutex mutex_;  // DDP begins collectives in autograd's threads
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> checked(c10::intrusive_ptr<c10d::Backend> backend,
                                          c10::intrusive_ptr<c10d::Backend> exchange) {
  return c10::make_intrusive<CheckedBackend>(std::move(backend), std::move(exchange));
}

bool checks_collectives() {
  const char* const set = std::getenv(kVariable);
  const std::string_view text = set == nullptr ? "" : set;
  if (text.empty() || text == "0") return false;
  if (text == "1") return true;
  throw UserError(fmt::format("{} is '{}', but must be 1 or 0", kVariable, text));
}

}  // namespace phalanx
