// SPDX-License-Identifier: Apache-2.0
#include "trainer/memory/caching_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>

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

// Addresses that begin with a huge page, without memory; nullptr if none are left.
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

CachingAllocator& CachingAllocator::instance() {
  static auto* const allocator = new CachingAllocator(*c10::GetCPUAllocator());
  return *allocator;  // never destroyed: tensors outlive main
}

// Most tensors are small: their way is short. What lies idle may be what is missing under a limit
// of the process's.
c10::DataPtr CachingAllocator::allocate(std::size_t bytes) {
  if (bytes >= kLarge) return allocate_large(bytes);
  try {
    return small_.allocate(bytes);
  } catch (const c10::Error&) {
    if (!give_all_back()) throw;
  }
  return small_.allocate(bytes);
}

c10::DataPtr CachingAllocator::allocate_large(std::size_t bytes) {
  if (bytes > PTRDIFF_MAX) return small_.allocate(bytes);  // which throws
  std::byte* const memory = take(rounded(bytes));
  TORCH_CHECK_WITH(OutOfMemoryError, memory != nullptr,
                   "can't allocate memory: you tried to allocate ", bytes, " bytes");
  c10::profiledCPUMemoryReporter().New(memory, bytes);
  return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
}

void CachingAllocator::copy_data(void* to, const void* from, std::size_t bytes) const {
  default_copy_data(to, from, bytes);
}

std::size_t CachingAllocator::most() const {
  const std::lock_guard lock(mutex_);
  return most_;
}

void CachingAllocator::release(void* memory) {
  CachingAllocator& self = instance();
  if (!self.has(memory)) return self.small_.raw_deleter()(memory);
  c10::profiledCPUMemoryReporter().Delete(memory);
  self.keep(memory);
}

bool CachingAllocator::has(void* memory) const {
  const std::lock_guard lock(mutex_);
  return used_.contains(memory);
}

void CachingAllocator::keep(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(memory);
  idle_.add(found->second);
  live_ -= found->second.bytes;
  used_.erase(found);
}

// Pages that were written before need not be cleared again: so one that lies idle comes first, cut
// where it is too large, and where none is large enough and there is no room for a new one beside
// them, grown, before the kernel gives any.
std::byte* CachingAllocator::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t most = std::max(most_, live_ + bytes);
  std::optional<Block> block = take_part(bytes);
  const auto excess = [&] {
    const std::size_t all = live_ + idle_.bytes() + bytes;
    return all > most ? all - most : 0;
  };
  if (!block && excess() > 0) block = take_and_grow(bytes);
  while (excess() > 0) give_back(excess());
  if (!block) block = map_new(bytes);
  if (!block) return nullptr;
  live_ += bytes;
  most_ = most;
  used_.emplace(block->begin, *block);
  return block->begin;
}

// Where it is cut: large blocks begin with huge pages, and small ones are their ends, so that what
// is left of a large one still does.
std::optional<CachingAllocator::Block> CachingAllocator::take_part(std::size_t bytes) {
  std::optional<Block> block = idle_.take_at_least(bytes);
  if (!block || block->bytes == bytes) return block;
  Block rest = *block;
  rest.bytes -= bytes;
  if (bytes < kDivisible) {
    block->begin = rest.end();
  } else {
    rest.begin += bytes;
  }
  block->bytes = bytes;
  idle_.add(rest);
  return block;
}

// The largest, at addresses with room behind it: its pages move, they are not copied.
std::optional<CachingAllocator::Block> CachingAllocator::take_and_grow(std::size_t bytes) {
  if (!may_grow_ || bytes < kDivisible) return std::nullopt;
  std::optional<Block> largest = idle_.take_largest();
  if (!largest) return std::nullopt;
  std::byte* const target = largest->bytes < kDivisible ? nullptr : aligned_range(bytes);
  if (target == nullptr) {
    idle_.add(*largest);
    return std::nullopt;
  }
  void* const moved = mremap(largest->begin, largest->bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                             static_cast<void*>(target));
  if (moved == MAP_FAILED) {
    // A limit of the process's. Older kernels have unmapped the target by then, and it may be
    // somebody's; newer ones have not: its addresses are given up, but only once.
    may_grow_ = false;
    idle_.add(*largest);
    return std::nullopt;
  }
  return Block{.begin = target, .bytes = bytes, .mapping = ++mappings_};
}

// From the kernel, which clears it; idle memory goes where a limit leaves no other.
std::optional<CachingAllocator::Block> CachingAllocator::map_new(std::size_t bytes) {
  std::byte* memory = mapped(bytes);
  while (memory == nullptr && !idle_.empty()) {
    give_back(bytes);
    memory = mapped(bytes);
  }
  if (memory == nullptr) return std::nullopt;
  // With small pages each of 512 would be a fault of its own: a fifth of a sharded step's time.
  madvise(memory, bytes, MADV_HUGEPAGE);
  return Block{.begin = memory, .bytes = bytes, .mapping = ++mappings_};
}

// So many of the smallest that is large enough, or all of the largest: the next step will need the
// rest again.
void CachingAllocator::give_back(std::size_t bytes) {
  std::optional<Block> block = idle_.take_at_least(bytes);
  if (!block) block = idle_.take_largest();
  const std::size_t cut = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  const std::size_t kept =
      block->bytes >= kDivisible && cut < block->bytes ? block->bytes - cut : 0;
  munmap(block->begin + kept, block->bytes - kept);
  if (kept > 0) idle_.add({.begin = block->begin, .bytes = kept, .mapping = block->mapping});
}

bool CachingAllocator::give_all_back() {
  const std::lock_guard lock(mutex_);
  const bool has_any = !idle_.empty();
  while (const auto block = idle_.take_largest()) munmap(block->begin, block->bytes);
  return has_any;
}

}  // namespace phalanx
