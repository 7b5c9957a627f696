// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "tests/test_device/host_syncs.h"
#include "tests/test_device/streams.h"

/// An accelerator without hardware, for tests of what depends on one: LibTorch's device type
/// PrivateUse1, whose operators are the CPU's and give the same bits. They compute at once, but
/// what has to wait for what is kept as on a GPU: streams, events, memory that is handed out again
/// in the order of a stream, pinned memory, and values that reach the host only once it has waited.
namespace phalanx::test_device {

/// Registers the device with LibTorch; further calls do nothing. Before ranks are forked, and
/// before another thread uses LibTorch.
void install();

/// What the whole process has done so far.
struct Counters {
  std::atomic<int64_t> operators = 0;
  std::atomic<int64_t> copied_results = 0;  ///< Results of kernels that allocate by themselves.
};
Counters& counters();

}  // namespace phalanx::test_device
