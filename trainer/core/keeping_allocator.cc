#include "trainer/core/keeping_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>

namespace phalanx {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = 2 * kMebibyte;
/// Tensors from here on have pages of their own.
constexpr std::size_t kLarge = kMebibyte;
/// Blocks from here on are of whole huge pages, and can be cut and grown.
constexpr std::size_t kDivisible = 8 * kMebibyte;

// Nearly equal tensors, such as an embedding's gradient and the flat one that it goes into, take
// the same block in turns. What is more than was asked for is hardly ever written, and so takes no
// memory.
std::size_t rounded(std::size_t bytes) {
  const std::size_t least = bytes < kDivisible ? kPage : kHugePage;
  const std::size_t step = std::max(std::bit_floor(bytes) / 16, least);
  return (bytes + step - 1) / step * step;
}

// Addresses that begin with a huge page, without memory; nullptr where there are none.
std::byte* aligned_range(std::size_t bytes) {
  void* const found =
      mmap(nullptr, bytes + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(found);
  const std::size_t over = reinterpret_cast<std::uintptr_t>(found) % kHugePage;
  const std::size_t head = over == 0 ? 0 : kHugePage - over;
  if (head > 0) munmap(begin, head);
  munmap(begin + head + bytes, kHugePage - head);
  return begin + head;
}

// Memory there, which the kernel clears; nullptr where a limit is reached.
std::byte* mapped(std::size_t bytes) {
  std::byte* const memory = aligned_range(bytes);
  if (memory == nullptr || mprotect(memory, bytes, PROT_READ | PROT_WRITE) == 0) return memory;
  munmap(memory, bytes);
  return nullptr;
}

}  // namespace

KeepingAllocator& KeepingAllocator::instance() {
  static auto* const allocator = new KeepingAllocator(*c10::GetCPUAllocator());
  return *allocator;  // never destroyed: tensors outlive main
}

c10::DataPtr KeepingAllocator::allocate(std::size_t bytes) {
  if (bytes > PTRDIFF_MAX) return small_.allocate(bytes);  // which throws
  if (bytes < kLarge) return allocate_small(bytes);
  std::byte* const memory = take(rounded(bytes));
  TORCH_CHECK_WITH(OutOfMemoryError, memory != nullptr,
                   "can't allocate memory: you tried to allocate ", bytes, " bytes");
  c10::profiledCPUMemoryReporter().New(memory, bytes);
  return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
}

// What lies idle may be what is missing under a limit of the process's.
c10::DataPtr KeepingAllocator::allocate_small(std::size_t bytes) {
  try {
    return small_.allocate(bytes);
  } catch (const c10::Error&) {
    if (!give_all_back()) throw;
  }
  return small_.allocate(bytes);
}

void KeepingAllocator::copy_data(void* to, const void* from, std::size_t bytes) const {
  default_copy_data(to, from, bytes);
}

std::size_t KeepingAllocator::most() const {
  const std::lock_guard lock(mutex_);
  return most_;
}

void KeepingAllocator::release(void* memory) {
  KeepingAllocator& self = instance();
  if (!self.has(memory)) return self.small_.raw_deleter()(memory);
  c10::profiledCPUMemoryReporter().Delete(memory);
  self.keep(memory);
}

bool KeepingAllocator::has(void* memory) const {
  const std::lock_guard lock(mutex_);
  return sizes_.contains(memory);
}

void KeepingAllocator::keep(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = sizes_.find(memory);
  add_idle(static_cast<std::byte*>(memory), found->second);
  live_ -= found->second;
  sizes_.erase(found);
}

// Pages that were written before need not be cleared again: so a block of the same size comes
// first, and where there is no room for a new one beside those that lie idle, one of these is cut
// or grown before the kernel gets any.
std::byte* KeepingAllocator::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::byte* memory = take_same(bytes);
  const std::size_t most = std::max(most_, live_ + bytes);
  const auto excess = [&] {
    const std::size_t all = live_ + idle_bytes_ + bytes;
    return all > most ? all - most : 0;
  };
  if (memory == nullptr && excess() > 0 && bytes >= kDivisible) memory = take_part(bytes);
  if (memory == nullptr && excess() > 0 && bytes >= kDivisible) memory = take_and_grow(bytes);
  while (excess() > 0) give_back(excess());
  if (memory == nullptr) memory = map_new(bytes);
  if (memory == nullptr) return nullptr;
  live_ += bytes;
  most_ = most;
  sizes_.emplace(memory, bytes);
  return memory;
}

std::byte* KeepingAllocator::take_same(std::size_t bytes) {
  const auto same = idle_.find(bytes);
  return same == idle_.end() ? nullptr : forget(same);
}

// The rest stays idle.
std::byte* KeepingAllocator::take_part(std::size_t bytes) {
  const auto larger = idle_.lower_bound(bytes);
  if (larger == idle_.end()) return nullptr;
  const std::size_t size = larger->first;
  std::byte* const memory = forget(larger);
  add_idle(memory + bytes, size - bytes);
  return memory;
}

// The largest, at addresses with room behind it: its pages move, they are not copied.
std::byte* KeepingAllocator::take_and_grow(std::size_t bytes) {
  if (!may_grow_ || idle_.empty() || std::prev(idle_.end())->first < kDivisible) return nullptr;
  std::byte* const target = aligned_range(bytes);
  if (target == nullptr) return nullptr;
  const auto largest = std::prev(idle_.end());
  void* const moved = mremap(largest->second, largest->first, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                             static_cast<void*>(target));
  if (moved == MAP_FAILED) {
    // A limit of the process's. Older kernels have unmapped the target by then, and it may be
    // somebody's; newer ones have not: its addresses are given up, but only once.
    may_grow_ = false;
    return nullptr;
  }
  forget(largest);
  return target;
}

// From the kernel, which clears it; idle memory goes where a limit leaves no other.
std::byte* KeepingAllocator::map_new(std::size_t bytes) {
  std::byte* memory = mapped(bytes);
  while (memory == nullptr && !idle_.empty()) {
    give_back(bytes);
    memory = mapped(bytes);
  }
  // With small pages each of 512 would be a fault of its own: a fifth of a sharded step's time.
  if (memory != nullptr) madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

std::byte* KeepingAllocator::forget(Idle::iterator block) {
  std::byte* const memory = block->second;
  idle_bytes_ -= block->first;
  idle_.erase(block);
  return memory;
}

void KeepingAllocator::add_idle(std::byte* memory, std::size_t bytes) {
  idle_.emplace(bytes, memory);
  idle_bytes_ += bytes;
}

// So many of the smallest that is large enough, or all of the largest: the next step will need the
// rest again.
void KeepingAllocator::give_back(std::size_t bytes) {
  auto block = idle_.lower_bound(bytes);
  if (block == idle_.end()) block = std::prev(block);
  const std::size_t size = block->first;
  const std::size_t cut = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  std::byte* const memory = forget(block);
  const std::size_t kept = size >= kDivisible && cut < size ? size - cut : 0;
  if (kept > 0) add_idle(memory, kept);
  munmap(memory + kept, size - kept);
}

bool KeepingAllocator::give_all_back() {
  const std::lock_guard lock(mutex_);
  const bool has_any = !idle_.empty();
  while (!idle_.empty()) give_back(idle_bytes_);
  return has_any;
}

}  // namespace phalanx
