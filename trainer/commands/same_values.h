// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/checkpoint/load.h"

namespace phalanx {

/// Whether two tensors of a checkpoint are of one dtype and shape and hold the same bits; takes the
/// memory of a few megabytes. Throws CheckpointError, IoError.
bool same_values(const Checkpoint& checkpoint, const ManifestTensor& a, const ManifestTensor& b);

}  // namespace phalanx
