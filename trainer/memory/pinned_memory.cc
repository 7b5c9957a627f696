// SPDX-License-Identifier: Apache-2.0
#include "trainer/memory/pinned_memory.h"

#include <c10/core/ScalarTypeToTypeMeta.h>
#include <c10/util/accumulate.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "trainer/cuda/load.h"

namespace phalanx {
namespace {

class CudaPins final : public HostPins {
 public:
  void pin(void* memory, size_t bytes) const override { load_cuda().pin(memory, bytes); }
  void unpin(void* memory) const noexcept override { load_cuda().unpin(memory); }
};

size_t in_whole_pages(size_t bytes) {
  static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

// Pinned pages; none for no bytes.
class Block {
 public:
  Block(size_t bytes, std::shared_ptr<const HostPins> pins)
      : bytes_(in_whole_pages(bytes)), pins_(std::move(pins)) {
    if (bytes_ == 0) return;
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    try {
      pins_->pin(memory_, bytes_);
    } catch (...) {
      ::munmap(memory_, bytes_);
      throw;
    }
  }
  Block(Block&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)),
        pins_(std::move(other.pins_)),
        memory_(std::exchange(other.memory_, nullptr)) {}
  Block& operator=(Block&&) = delete;
  ~Block() {
    if (bytes_ == 0) return;
    pins_->unpin(memory_);
    ::munmap(memory_, bytes_);
  }

  void* memory() const { return memory_; }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
  std::shared_ptr<const HostPins> pins_;
  void* memory_ = nullptr;
};

size_t bytes_of(at::IntArrayRef sizes, at::ScalarType dtype) {
  return static_cast<size_t>(c10::multiply_integers(sizes)) * c10::elementSize(dtype);
}

// What a tensor's memory belongs to; `give_back` is called once the tensor is gone.
template <class GiveBack>
at::Tensor tensor_in(Block block, at::IntArrayRef sizes, at::ScalarType dtype, GiveBack give_back) {
  struct Owner {
    Owner(Block of_tensor, GiveBack by) : block(std::move(of_tensor)), give_back(std::move(by)) {}
    Block block;
    GiveBack give_back;
  };
  void* const memory = block.memory();
  const size_t bytes = bytes_of(sizes, dtype);
  auto owner = std::make_unique<Owner>(std::move(block), std::move(give_back));
  const auto end = [](void* context) {
    const std::unique_ptr<Owner> owned(static_cast<Owner*>(context));
    owned->give_back(std::move(owned->block));
  };
  c10::DataPtr data(memory, owner.release(), end, at::kCPU);
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, std::move(data));
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return tensor;
}

}  // namespace

std::shared_ptr<const HostPins> cuda_pins() {
  static const auto pins = std::make_shared<const CudaPins>();
  return pins;
}

at::Tensor pinned_empty(at::IntArrayRef sizes, at::ScalarType dtype,
                        const std::shared_ptr<const HostPins>& pins) {
  return tensor_in(Block(bytes_of(sizes, dtype), pins), sizes, dtype, [](const Block&) {});
}

class PinnedPool::Blocks {
 public:
  explicit Blocks(std::shared_ptr<const HostPins> pins) : pins_(std::move(pins)) {}

  Block take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto& free = free_[in_whole_pages(bytes)];
    if (free.empty()) return {bytes, pins_};
    Block block = std::move(free.back());
    free.pop_back();
    return block;
  }

  void give_back(Block block) {
    const std::lock_guard lock(mutex_);
    free_[block.bytes()].push_back(std::move(block));
  }

 private:
  const std::shared_ptr<const HostPins> pins_;
  std::mutex mutex_;
  std::map<size_t, std::vector<Block>> free_;  // By their sizes.
};

PinnedPool::PinnedPool(std::shared_ptr<const HostPins> pins)
    : blocks_(std::make_shared<Blocks>(std::move(pins))) {}

at::Tensor PinnedPool::empty(at::IntArrayRef sizes, at::ScalarType dtype) {
  return tensor_in(blocks_->take(bytes_of(sizes, dtype)), sizes, dtype,
                   [blocks = blocks_](Block block) { blocks->give_back(std::move(block)); });
}

}  // namespace phalanx
