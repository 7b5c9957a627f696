// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "tests/test_device/clock.h"
#include "tests/test_device/streams.h"
#include "tests/test_device/timeline.h"

namespace phalanx::test_device {
namespace {

constexpr std::size_t kSmallestBlock = 512;
constexpr std::size_t kPage = 4096;

struct Block {
  char* begin = nullptr;
  std::size_t bytes = 0;
  int device = 0;
  uint32_t stream = 0;
  uint64_t owner = 0;              // the number of the allocation that has it, or had it last
  std::vector<uint32_t> recorded;  // streams that record_stream named
  Clock used;                      // of pinned memory: the copies from and to it
  Clock freed;                     // what must be over before it is handed out again
};

// A power of two, or three quarters of one: blocks of few sizes are found again.
std::size_t rounded(std::size_t bytes) {
  std::size_t size = kSmallestBlock;
  while (size < bytes) size *= 2;
  const std::size_t less = size / 2 + size / 4;
  return size > kPage && less >= bytes ? less : size;
}

// The memory of a device, or the pinned memory.
class Arena {
 public:
  bool holds(const void* memory) const {
    return begin_ != nullptr && memory >= begin_ && memory < begin_ + used_;
  }

  Block* find(const void* memory) {
    if (!holds(memory)) return nullptr;
    const auto after = blocks_.upper_bound(static_cast<const char*>(memory));
    Block* const block = std::prev(after)->second.get();
    return memory < block->begin + block->bytes ? block : nullptr;
  }

  Block& take(int device, uint32_t stream, std::size_t bytes) {
    give_out_what_is_over();
    auto& free = free_[{stream, bytes}];
    Block* block = nullptr;
    if (free.empty()) {
      block = &make(device, stream, bytes);
    } else {
      block = free.back();
      free.pop_back();
      ++counts.reuses;
    }
    block->recorded.clear();
    block->used = {};
    block->freed = {};
    ++counts.allocations;
    counts.live_bytes += bytes;
    counts.peak_bytes = std::max(counts.peak_bytes, counts.live_bytes);
    return *block;
  }

  void give_back(Block& block) {
    counts.live_bytes -= block.bytes;
    block.freed = block.used;
    for (const uint32_t stream : block.recorded) block.freed.join(clock_of(stream));
    if (clock_of_host().covers(block.freed)) {
      free_[{block.stream, block.bytes}].push_back(&block);
    } else {
      in_use_elsewhere_.push_back(&block);
    }
  }

  MemoryCounts counts;

 private:
  Block& make(int device, uint32_t stream, std::size_t bytes) {
    if (begin_ == nullptr) begin_ = reserve();
    const std::size_t step = (bytes + kPage - 1) / kPage * kPage;
    if (used_ + step > kDeviceBytes) throw std::bad_alloc();
    auto block = std::make_unique<Block>();
    block->begin = begin_ + used_;
    block->bytes = bytes;
    block->device = device;
    block->stream = stream;
    used_ += step;
    if (::mprotect(block->begin, step, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    return *blocks_.emplace(block->begin, std::move(block)).first->second;
  }

  static char* reserve() {
    void* const memory = ::mmap(nullptr, kDeviceBytes, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return static_cast<char*>(memory);
  }

  void give_out_what_is_over() {
    if (in_use_elsewhere_.empty()) return;
    const Clock host = clock_of_host();
    std::erase_if(in_use_elsewhere_, [&](Block* block) {
      if (!host.covers(block->freed)) return false;
      free_[{block->stream, block->bytes}].push_back(block);
      return true;
    });
  }

  char* begin_ = nullptr;
  std::size_t used_ = 0;
  std::map<const char*, std::unique_ptr<Block>> blocks_;
  std::map<std::pair<uint32_t, std::size_t>, std::vector<Block*>> free_;
  std::vector<Block*> in_use_elsewhere_;  // freed, but other streams may still use them
};

struct Memory {
  std::mutex mutex;
  std::array<Arena, kDevices + 1> arenas;  // the last is the pinned one
  uint64_t allocations = 0;

  Arena& arena(int device) {
    return arenas.at(device == kPinned ? kDevices : static_cast<std::size_t>(device));
  }
  Block* find(const void* memory) {
    for (Arena& arena : arenas) {
      if (Block* const block = arena.find(memory)) return block;
    }
    return nullptr;
  }
};

// Never destroyed: tensors in static variables free their memory when the process ends.
Memory& memory_of_all() {
  static auto* const memory = new Memory;
  return *memory;
}

using Lock = std::lock_guard<std::mutex>;

}  // namespace

void* allocate(int device, uint32_t stream, std::size_t bytes) {
  Memory& all = memory_of_all();
  const Lock lock(all.mutex);
  Block& block = all.arena(device).take(device, stream, rounded(bytes));
  block.owner = ++all.allocations;
  return block.begin;
}

void free_memory(void* memory) {
  Memory& all = memory_of_all();
  const Lock lock(all.mutex);
  Block* const block = all.find(memory);
  all.arena(block->device).give_back(*block);
}

bool is_on_device(const void* memory) {
  const Lock lock(memory_of_all().mutex);
  const Block* const block = memory_of_all().find(memory);
  return block != nullptr && block->device != kPinned;
}

bool is_pinned(const void* memory) {
  const Lock lock(memory_of_all().mutex);
  return memory_of_all().arena(kPinned).holds(memory);
}

BlockOf block_of(const void* memory) {
  const Lock lock(memory_of_all().mutex);
  const Block* const block = memory_of_all().find(memory);
  if (block == nullptr) return {};
  return {block->begin, block->device, block->stream, block->owner};
}

void record_stream(const void* memory, uint32_t stream) {
  const Lock lock(memory_of_all().mutex);
  Block* const block = memory_of_all().find(memory);
  if (block != nullptr && block->stream != stream) block->recorded.push_back(stream);
}

Clock over_before_reuse(const void* memory) {
  const Lock lock(memory_of_all().mutex);
  Clock over = clock_of_host();
  const Block* const block = memory_of_all().find(memory);
  if (block == nullptr) return over;
  over.join(clock_of(block->stream));
  for (const uint32_t stream : block->recorded) over.join(clock_of(stream));
  return over;
}

void record_use(const void* memory, uint32_t stream, uint64_t operation) {
  const Lock lock(memory_of_all().mutex);
  if (Block* const block = memory_of_all().find(memory)) block->used.raise(stream, operation);
}

MemoryCounts memory_counts(int device) {
  const Lock lock(memory_of_all().mutex);
  return memory_of_all().arena(device).counts;
}

void reset_peak(int device) {
  const Lock lock(memory_of_all().mutex);
  MemoryCounts& counts = memory_of_all().arena(device).counts;
  counts.peak_bytes = counts.live_bytes;
}

}  // namespace phalanx::test_device
