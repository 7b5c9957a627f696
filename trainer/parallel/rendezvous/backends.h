// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "trainer/ranks/collectives/make_process_group.h"

namespace phalanx {

/// Connects groups of ranks that compute on `device`: through NCCL for tensors on GPUs (through
/// Gloo where PHALANX_GPU_BACKEND is "gloo", on all ranks), through Gloo for those in host memory,
/// on every device. Gloo listens at `address`, one of this host's; empty: on the network interfaces
/// that GLOO_SOCKET_IFNAME names. Gloo's backend goes through the process's decorator
/// (backend_decorator.h). With `checks` ranks compare what they are about to do in each collective
/// (checked_backend.h), which all ranks of a group do or none. The result throws what Gloo and NCCL
/// throw.
MakeProcessGroup process_group_maker(at::Device device, const std::string& address,
                                     bool checks = false);

}  // namespace phalanx
