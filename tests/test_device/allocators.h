// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Allocator.h>

namespace phalanx::test_device {

/// LibTorch's allocators of the device's memory, for the current device and stream, and of pinned
/// memory.
c10::Allocator* device_allocator();
c10::Allocator* pinned_allocator();

/// Makes both known, and has the CPU's allocator give memory of a device in a KernelScope.
void install_allocators();

}  // namespace phalanx::test_device
