// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/io/file.h"

namespace phalanx {

/// Bytes. Git LFS takes no larger file for a pointer (its docs/spec.md).
inline constexpr uint64_t kLargestLfsPointer = 1024;

/// What a Git LFS pointer is and what to do, to stand behind its path: the few lines of text that a
/// clone without Git LFS has in place of a large file (version, checksum and size; the version of
/// 2012 on). None: `text`, the whole file, is something else.
std::optional<std::string> lfs_pointer_problem(std::string_view text);

/// The same of an open file of any size.
std::optional<std::string> lfs_pointer_problem(const File& file);

/// Throws UserError where an open file that a user names is a Git LFS pointer.
void refuse_lfs_pointer(const File& file);

/// The same where its text is read already; `read_text` calls it.
void refuse_lfs_pointer(const std::filesystem::path& path, std::string_view text);

}  // namespace phalanx
