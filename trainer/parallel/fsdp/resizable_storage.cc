// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/resizable_storage.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <utility>

#include "trainer/tensors/tensors.h"

namespace phalanx::fsdp {

// What is lent: its memory, and the pool that gets it back.
struct BufferPool::Loan {
  c10::DataPtr memory;
  std::size_t bytes;
  std::shared_ptr<BufferPool> pool;
};

void BufferPool::give_back(void* loan) {
  const std::unique_ptr<Loan> owned(static_cast<Loan*>(loan));
  owned->pool->keep(std::move(owned->memory), owned->bytes);
}

void BufferPool::keep(c10::DataPtr memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  largest_ = std::max(largest_, bytes);
  idle_bytes_ += bytes;
  idle_.emplace(bytes, std::move(memory));
  // Units of many sizes would each leave a buffer behind: the smallest go first.
  while (idle_bytes_ > kept_ * largest_) {
    idle_bytes_ -= idle_.begin()->first;
    idle_.erase(idle_.begin());
  }
}

at::Tensor BufferPool::empty(int64_t size, const at::TensorOptions& options) {
  ResizableStorage tensor(size, options, shared_from_this());
  tensor.allocate();
  return tensor.tensor();
}

c10::DataPtr BufferPool::take(c10::StorageImpl& storage, std::size_t bytes) {
  if (!storage.device().is_cpu()) return storage.allocator()->allocate(bytes);
  auto loan =
      std::make_unique<Loan>(Loan{.memory = {}, .bytes = bytes, .pool = shared_from_this()});
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = idle_.find(bytes); found != idle_.end()) {
      loan->memory = std::move(found->second);
      idle_bytes_ -= bytes;
      idle_.erase(found);
    }
  }
  if (!loan->memory) loan->memory = c10::GetCPUAllocator()->allocate(bytes);
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
