// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace phalanx {

/// Whether a path of data names anything on this host: a file, a folder, the prefix of an indexed
/// set (PREFIX.idx), or a glob(3) pattern with matches. Reads no folder to its end.
bool names_files(const std::filesystem::path& path);

}  // namespace phalanx
