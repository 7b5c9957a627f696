// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/checkpoint/load/load.h"

namespace phalanx {

/// The headers of a checkpoint's safetensors files say the same of its tensors as its manifest: of
/// what dtype and shape they are, and where each slice stands. So every reader gets the same
/// values, by whichever of the two. Throws CheckpointError naming file and tensor, or IoError.
void require_headers_agree(const Checkpoint& checkpoint);

}  // namespace phalanx
