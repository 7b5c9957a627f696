// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "trainer/checkpoint/load/load.h"

namespace phalanx {

/// What a user means by a path that a new run begins with: checkpoints in the order in which to try
/// them, or a model that others wrote. Throws UserError if the path leads to neither.
std::vector<std::filesystem::path> sources_at(const std::filesystem::path& path);

/// Opens one of them. Throws CheckpointError or IoError.
Checkpoint open_source(const std::filesystem::path& path);

}  // namespace phalanx
