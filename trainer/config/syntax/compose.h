// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>

#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// Reads config files and lays each over those before it (merge). A file's own `include:
/// base.yaml`, or a list of files, is read first, and the file laid over it; its paths are relative
/// to the file that they stand in. A file that includes itself, over others or not, and one that is
/// not there go to `diagnostics` with the place of the `include`. Throws as read_file does.
Node read_files(std::span<const std::filesystem::path> files, Diagnostics& diagnostics);

}  // namespace phalanx::config
