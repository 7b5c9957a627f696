// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <memory>
#include <optional>

#include "trainer/memory/deferred_init.h"

namespace phalanx {

/// Where a sharded model comes to lie.
struct FsdpPlacement {
  std::optional<c10::Device> device;     ///< That computes; none: where the parameters are.
  std::optional<c10::ScalarType> dtype;  ///< Of floating-point shards; none: the parameters' own.
  /// Shards, their gradients, and so the optimizer's state in host memory; what is gathered is on
  /// the device (torch.distributed.fsdp.CPUOffload).
  bool cpu_offload = false;
  /// Values that the module is still to get: each goes straight into this rank's shard.
  std::shared_ptr<DeferredInit> deferred_init = nullptr;
};

}  // namespace phalanx
