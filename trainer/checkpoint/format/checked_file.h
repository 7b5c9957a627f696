// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "trainer/checkpoint/format/contents.h"
#include "trainer/io/file.h"

namespace phalanx {

/// Opens a checkpoint's file to read, and compares its size and its head with what the manifest
/// says. Throws CheckpointError, or IoError, also for a symbolic link.
File open_checked(const std::filesystem::path& path, const ManifestFile& expected);

/// Writes and fsyncs a new text file. Returns what a manifest says of it. Throws IoError.
ManifestFile write_text(const std::filesystem::path& path, std::string_view text);

/// Where one of the files lies. In a folder that others wrote, links are followed: a cache of
/// models consists of them. Throws IoError where one leads nowhere.
std::filesystem::path path_of(const std::filesystem::path& folder, const Contents& contents,
                              const std::string& name);

}  // namespace phalanx
