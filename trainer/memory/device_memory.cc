// SPDX-License-Identifier: Apache-2.0
#include "trainer/memory/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

namespace phalanx {

std::optional<DeviceMemory> device_memory(at::Device device) {
  if (device.is_cpu()) return std::nullopt;
  auto* const allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  if (allocator == nullptr) return std::nullopt;
  const auto [free, total] = allocator->getMemoryInfo(device.index());
  DeviceMemory memory{.total = static_cast<int64_t>(total), .free = static_cast<int64_t>(free)};
  if (!allocator->initialized()) return memory;
  const auto stats = allocator->getDeviceStats(device.index());
  const auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  memory.reserved = stats.reserved_bytes[all].current;
  memory.in_tensors = stats.allocated_bytes[all].current;
  memory.most_in_tensors = stats.allocated_bytes[all].peak;
  return memory;
}

}  // namespace phalanx
