// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "trainer/checkpoint/format/contents.h"

namespace phalanx {

/// Whether two tensors of a folder are of one dtype and shape and hold the same bits; takes the
/// memory of a few megabytes. Throws CheckpointError, IoError.
bool same_values(const std::filesystem::path& folder, const Contents& contents,
                 const ManifestTensor& a, const ManifestTensor& b);

}  // namespace phalanx
