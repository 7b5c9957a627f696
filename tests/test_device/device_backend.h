// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace phalanx::test_device {

/// Collectives of the device's tensors, as NCCL's: on a stream of their own, which waits for the
/// current one; waiting for the result makes the current stream wait, and not the host. `carrier`,
/// a backend for host memory, moves the values meanwhile in a thread. Throws c10::Error for tensors
/// that are not contiguous or on several devices.
c10::intrusive_ptr<c10d::Backend> make_device_backend(c10::intrusive_ptr<c10d::Backend> carrier);

}  // namespace phalanx::test_device
