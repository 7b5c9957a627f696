// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/resizable_storage.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <utility>

#include "trainer/base/quietly.h"
#include "trainer/tensors/tensors.h"

namespace phalanx::fsdp {

// What is lent: its memory, and the pool that gets it back.
struct BufferPool::Loan {
  c10::DataPtr memory;
  std::size_t bytes;
  std::shared_ptr<BufferPool> pool;
};

// Called where a tensor ends. On a device that fails it is not kept, and goes back to LibTorch.
void BufferPool::give_back(void* loan) {
  const std::unique_ptr<Loan> owned(static_cast<Loan*>(loan));
  quietly([&] { owned->pool->keep(std::move(owned->memory), owned->bytes); });
}

BufferPool::BufferPool(std::size_t kept, std::shared_ptr<const DeviceStreams> streams)
    : kept_(kept), streams_(std::move(streams)) {}

// On a device that fails no order is left to keep.
BufferPool::~BufferPool() {
  quietly([this] {
    while (!idle_.empty()) drop_smallest();
  });
}

void BufferPool::keep(c10::DataPtr memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Idle idle{.memory = std::move(memory), .last_use = std::nullopt, .number = given_back_ + 1};
  if (streams_) idle.last_use = enqueued_so_far(idle.memory.device());
  idle_.emplace(bytes, std::move(idle));
  ++given_back_;
  largest_ = std::max(largest_, bytes);
  idle_bytes_ += bytes;
  // Units of many sizes would each leave a buffer behind: the smallest go first.
  while (idle_bytes_ > kept_ * largest_) drop_smallest();
}

// The device's allocator gives it to whoever asks on the gathers' stream.
void BufferPool::drop_smallest() {
  const auto smallest = idle_.begin();
  const auto& [bytes, idle] = *smallest;
  if (idle.last_use) {
    streams_->gather.wait_for(*idle.last_use);
    --made_[bytes];
  }
  idle_bytes_ -= bytes;
  idle_.erase(smallest);
}

// On a device not what has just been computed with, unless there is a second of its size: units of
// one size take turns with two.
c10::DataPtr BufferPool::take_idle(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = idle_.lower_bound(bytes);
  const bool is_there = found != idle_.end() && found->first == bytes;
  const bool is_too_early =
      streams_ && is_there && found->second.number == given_back_ && made_[bytes] < kept_;
  if (!is_there || is_too_early) {
    if (streams_) ++made_[bytes];
    return {};
  }
  Idle idle = std::move(found->second);
  idle_bytes_ -= bytes;
  idle_.erase(found);
  if (idle.last_use) streams_->gather.wait_for(*idle.last_use);
  return std::move(idle.memory);
}

at::Tensor BufferPool::empty(int64_t size, const at::TensorOptions& options) {
  if (streams_) return tensors::empty({size}, options);
  ResizableStorage tensor(size, options, shared_from_this());
  tensor.allocate();
  return tensor.tensor();
}

c10::DataPtr BufferPool::take(c10::StorageImpl& storage, std::size_t bytes) {
  auto loan = std::make_unique<Loan>(
      Loan{.memory = take_idle(bytes), .bytes = bytes, .pool = shared_from_this()});
  if (!loan->memory) {
    c10::Allocator* const from = streams_ ? storage.allocator() : c10::GetCPUAllocator();
    loan->memory = from->allocate(bytes);
  }
  void* const data = loan->memory.get();
  return {data, loan.release(), &give_back, storage.device()};
}

std::size_t BufferPool::idle_bytes() const {
  const std::lock_guard lock(mutex_);
  return idle_bytes_;
}

ResizableStorage::ResizableStorage(int64_t size, const at::TensorOptions& options,
                                   std::shared_ptr<BufferPool> pool)
    : tensor_(tensors::empty({0}, options)), pool_(std::move(pool)) {
  tensor_.unsafeGetTensorImpl()->set_sizes_contiguous({size});
}

bool ResizableStorage::is_allocated() const {
  return tensor_.numel() == 0 || tensor_.storage().data() != nullptr;
}

void ResizableStorage::allocate() {
  if (is_allocated()) return;
  c10::StorageImpl* const storage = tensor_.storage().unsafeGetStorageImpl();
  const std::size_t bytes = tensor_.nbytes();
  storage->set_data_ptr_noswap(pool_->take(*storage, bytes));
  storage->set_nbytes(bytes);
}

void ResizableStorage::free() {
  if (tensor_.numel() == 0) return;
  c10::StorageImpl* const storage = tensor_.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(c10::DataPtr(nullptr, tensor_.device()));
  storage->set_nbytes(0);
}

}  // namespace phalanx::fsdp
