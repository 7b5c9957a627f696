// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/parallel/device.h"

namespace phalanx {

/// Throws UserError, before ranks are started, for replicas in more ranks than one, for units that
/// are recomputed, and for GPUs that are not there.
void require_replicas(const std::vector<int64_t>& devices, int64_t ranks,
                      bool recomputes_activations, DeviceChoice choice);

/// Where the replicas of a model on `original` compute: on the CPU as many times, or on those GPUs.
/// Throws UserError for GPUs of which the first is not the original's.
std::vector<at::Device> replica_devices(const std::vector<int64_t>& devices, at::Device original);

/// "2 replicas on cpu, cpu, in threads of this process; two ranks (strategy: ddp) are faster".
std::string describe_replicas(const std::vector<int64_t>& devices, at::Device original);

}  // namespace phalanx
