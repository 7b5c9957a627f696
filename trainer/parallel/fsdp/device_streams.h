// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/tensors/side_stream.h"

namespace phalanx::fsdp {

/// The streams of an engine on a device, beside the one that computes (the unshard and the
/// post-backward stream of torch.distributed.fsdp). Who computes waits for a gather before it uses
/// the unit, and for a reduction before it gives the memory of whole gradients to others.
struct DeviceStreams {
  explicit DeviceStreams(c10::Device device) : gather(device), reduce(device) {}

  /// Gathers, and what brings shards there: they need not wait for what is computed before the
  /// unit. From the beginning of a pass on shards stay as they are.
  SideStream gather;
  /// Reductions, and what follows them: they wait for the gradients, and nothing that is computed
  /// waits for what follows a reduction before the end of the pass.
  SideStream reduce;
};

}  // namespace phalanx::fsdp
