#include "trainer/core/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>

namespace phalanx {
namespace {

constexpr std::size_t kPage = 4096;
/// Tensors from here on have pages of their own.
constexpr std::size_t kLarge = std::size_t{1} << 20;

// Large tensors' memory, kept when they are gone for the next of the same size, but never more than
// would fit beside those that are there into what was needed at a time before: a process is as
// large as its tensors were at most. (In the heap, blocks of many sizes leave holes that the next
// ones do not fit into: a step of sharded training took half as much again.)
class KeepingAllocator final : public c10::Allocator {
 public:
  explicit KeepingAllocator(c10::Allocator& small) : small_(small) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes < kLarge || bytes > PTRDIFF_MAX) return small_.allocate(bytes);  // or it throws
    void* const memory = take((bytes + kPage - 1) / kPage * kPage);
    c10::profiledCPUMemoryReporter().New(memory, bytes);
    return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  static KeepingAllocator& instance() {
    static auto* const allocator = new KeepingAllocator(*c10::GetCPUAllocator());
    return *allocator;  // never destroyed: tensors outlive main
  }

 private:
  static void release(void* memory) {
    KeepingAllocator& self = instance();
    if (!self.has(memory)) return self.small_.raw_deleter()(memory);
    c10::profiledCPUMemoryReporter().Delete(memory);
    self.keep(memory);
  }

  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    live_ += bytes;
    most_ = std::max(most_, live_);
    if (const auto same = idle_.find(bytes); same != idle_.end()) {
      void* const memory = same->second;
      idle_.erase(same);
      idle_bytes_ -= bytes;
      sizes_.emplace(memory, bytes);
      return memory;
    }
    while (live_ + idle_bytes_ > most_) give_back(live_ + idle_bytes_ - most_);
    void* memory = map(bytes);
    while (memory == MAP_FAILED && !idle_.empty()) {
      give_back(bytes);
      memory = map(bytes);
    }
    if (memory == MAP_FAILED) {
      live_ -= bytes;
      TORCH_CHECK_WITH(OutOfMemoryError, false, "can't allocate memory: you tried to allocate ",
                       bytes, " bytes");
    }
    sizes_.emplace(memory, bytes);
    return memory;
  }

  bool has(void* memory) {
    const std::lock_guard lock(mutex_);
    return sizes_.contains(memory);
  }

  void keep(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(memory);
    idle_.emplace(found->second, memory);
    idle_bytes_ += found->second;
    live_ -= found->second;
    sizes_.erase(found);
  }

  static void* map(std::size_t bytes) {
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  // The smallest that is large enough, or the largest: the next step will need it again.
  void give_back(std::size_t bytes) {
    auto block = idle_.lower_bound(bytes);
    if (block == idle_.end()) block = std::prev(block);
    munmap(block->second, block->first);
    idle_bytes_ -= block->first;
    idle_.erase(block);
  }

  c10::Allocator& small_;
  std::mutex mutex_;
  std::unordered_map<void*, std::size_t> sizes_;  ///< Of what is in use.
  std::multimap<std::size_t, void*> idle_;        ///< By size.
  std::size_t live_ = 0;
  std::size_t idle_bytes_ = 0;
  std::size_t most_ = 0;  ///< In use at a time.
};

}  // namespace

void keep_freed_memory() {
  // No block of the heap from mmap (a threshold would do, but glibc refuses one above 32 MiB), and
  // no trimming of the heap's end.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  c10::SetCPUAllocator(&KeepingAllocator::instance());
}

}  // namespace phalanx
