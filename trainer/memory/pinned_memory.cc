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

 private:
  size_t bytes_;
  std::shared_ptr<const HostPins> pins_;
  void* memory_ = nullptr;
};

size_t bytes_of(at::IntArrayRef sizes, at::ScalarType dtype) {
  return static_cast<size_t>(c10::multiply_integers(sizes)) * c10::elementSize(dtype);
}

// A tensor in memory that belongs to `owner`; `give_back` is called with it once the tensor is
// gone.
template <class Owner, class GiveBack>
at::Tensor tensor_in(void* memory, Owner owner, at::IntArrayRef sizes, at::ScalarType dtype,
                     GiveBack give_back) {
  struct Held {
    Held(Owner of_memory, GiveBack by) : owner(std::move(of_memory)), give_back(std::move(by)) {}
    Owner owner;
    GiveBack give_back;
  };
  auto held = std::make_unique<Held>(std::move(owner), std::move(give_back));
  const auto end = [](void* context) {
    const std::unique_ptr<Held> owned(static_cast<Held*>(context));
    owned->give_back(std::move(owned->owner));
  };
  c10::DataPtr data(memory, held.release(), end, at::kCPU);
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes_of(sizes, dtype), std::move(data));
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
  Block block(bytes_of(sizes, dtype), pins);
  void* const memory = block.memory();
  return tensor_in(memory, std::move(block), sizes, dtype, [](const Block&) {});
}

class PinnedPool::Blocks {
 public:
  explicit Blocks(Make make) : make_(std::move(make)) {}

  at::Tensor take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto& free = free_[bytes];
    if (free.empty()) return make_(static_cast<int64_t>(bytes));
    at::Tensor block = std::move(free.back());
    free.pop_back();
    return block;
  }

  void give_back(at::Tensor block) {
    const std::lock_guard lock(mutex_);
    free_[block.nbytes()].push_back(std::move(block));
  }

 private:
  const Make make_;
  std::mutex mutex_;
  std::map<size_t, std::vector<at::Tensor>> free_;  // By their sizes.
};

PinnedPool::PinnedPool(Make make) : blocks_(std::make_shared<Blocks>(std::move(make))) {}

at::Tensor PinnedPool::empty(at::IntArrayRef sizes, at::ScalarType dtype) {
  at::Tensor block = blocks_->take(bytes_of(sizes, dtype));
  void* const memory = block.storage().mutable_data();
  return tensor_in(memory, std::move(block), sizes, dtype,
                   [blocks = blocks_](at::Tensor unused) { blocks->give_back(std::move(unused)); });
}

}  // namespace phalanx
