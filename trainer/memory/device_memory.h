// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace phalanx {

/// The memory of a GPU, in bytes.
struct DeviceMemory {
  int64_t total = 0;
  int64_t free = 0;             ///< Nobody has taken it, no other process either.
  int64_t reserved = 0;         ///< Taken by LibTorch's allocator in this process, in use or kept.
  int64_t in_tensors = 0;       ///< The part of it in use.
  int64_t most_in_tensors = 0;  ///< The most that was in use at a time.
};

/// Nothing for the CPU, and for a device whose allocator keeps no such account. Throws LibTorch's
/// error where the device does not answer.
std::optional<DeviceMemory> device_memory(at::Device device);

}  // namespace phalanx
