// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <chrono>

#include "trainer/ranks/make_process_group.h"

namespace phalanx {

/// Connects groups of ranks that compute on `device`: through NCCL for tensors on GPUs, through
/// Gloo for those in host memory, on every device. Gloo listens on loopback alone when all ranks
/// are on one host; else on the address that this host's name stands for. GLOO_SOCKET_IFNAME picks
/// other network interfaces. An operation fails after `timeout`. Gloo's backend goes through the
/// process's decorator (backend_decorator.h). The result throws UserError if other hosts
/// could not reach this one, and what Gloo and NCCL throw.
MakeProcessGroup process_group_maker(at::Device device, bool one_host,
                                     std::chrono::milliseconds timeout);

}  // namespace phalanx
