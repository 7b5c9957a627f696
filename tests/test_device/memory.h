// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/test_device/clock.h"

/// Memory of the devices and pinned memory of the host: ranges of addresses of their own, cut into
/// blocks that are handed out again as CUDA's caching allocators do it. A freed block goes at once
/// to whoever allocates on its stream next: the order of a stream is all that protects it.
namespace phalanx::test_device {

/// The addresses of each device: memory is taken as it is used.
inline constexpr std::size_t kDeviceBytes = std::size_t{1} << 36;
inline constexpr int kPinned = -1;  ///< In place of a device: host memory.

/// Whose an address is.
struct BlockOf {
  const char* begin = nullptr;  ///< None: it is of no block.
  int device = kPinned;
  uint32_t stream = 0;  ///< Whose it is: that of its allocation.
  uint64_t owner = 0;   ///< The number of the allocation that has the block, or had it last.
};
BlockOf block_of(const void* memory);

struct MemoryCounts {
  std::size_t live_bytes = 0;
  std::size_t peak_bytes = 0;
  int64_t allocations = 0;
  int64_t reuses = 0;
};

/// `bytes` > 0, for what `stream` runs. Throws std::bad_alloc when the range is used up.
void* allocate(int device, uint32_t stream, std::size_t bytes);
void free_memory(void* memory);

bool is_on_device(const void* memory);
bool is_pinned(const void* memory);

/// The block is not handed out again before what `stream` has by the time of its freeing is over.
void record_stream(const void* memory, uint32_t stream);
/// What is over before anybody else has the memory of a device, if it is freed now.
Clock over_before_reuse(const void* memory);
/// Pinned memory is not handed out again before the host knows that this operation is over.
void record_use(const void* memory, uint32_t stream, uint64_t operation);

MemoryCounts memory_counts(int device);
void reset_peak(int device);

}  // namespace phalanx::test_device
