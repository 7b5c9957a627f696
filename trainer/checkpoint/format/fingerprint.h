// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/checkpoint/load/load.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// A checksum of the model's names, dtypes, shapes and values, whatever files they stand in; the
/// same on all ranks, which share the reading. Throws CheckpointError on all where that fails.
std::string fingerprint_of(const Checkpoint& checkpoint, const Ranks& ranks);

}  // namespace phalanx
