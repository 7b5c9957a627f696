// SPDX-License-Identifier: Apache-2.0
#include "trainer/memory/memory.h"

#include <c10/core/CPUAllocator.h>
#include <malloc.h>

#include "trainer/memory/caching_allocator.h"

namespace phalanx {

void use_caching_allocator() {
  // No block of the heap from mmap (a threshold would do, but glibc refuses one above 32 MiB), and
  // no trimming of the heap's end.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  c10::SetCPUAllocator(&CachingAllocator::instance());
}

int64_t most_large_tensor_bytes() {
  const auto* const allocator = dynamic_cast<CachingAllocator*>(c10::GetCPUAllocator());
  return allocator == nullptr ? 0 : static_cast<int64_t>(allocator->most());
}

}  // namespace phalanx
