// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <memory>
#include <optional>

#include "trainer/memory/deferred_init.h"

namespace phalanx {

/// Where the model that ranks train together is kept, and where its values come from.
struct ModelPlacement {
  std::optional<c10::Device> device;     ///< That computes; none: where the parameters are.
  std::optional<c10::ScalarType> dtype;  ///< The type of floating-point values; none: their own.
  /// FSDP: shards, their gradients, and so the optimizer's state in host memory; what is gathered
  /// is on the device (torch.distributed.fsdp.CPUOffload).
  bool cpu_offload = false;
  /// Values that the module is still to get.
  std::shared_ptr<DeferredInit> deferred_init = nullptr;
};

}  // namespace phalanx
