// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "trainer/data/text/text_form.h"
#include "trainer/io/file_list.h"

namespace phalanx {

/// What a text file holds, as a hash.
struct TextContent {
  std::array<std::byte, 16> hash{};  ///< XXH3, 128 bits.
  TextForm form = TextForm::plain;

  /// The hash as 32 hexadecimal digits.
  std::string digits() const;
};

/// What files hold. A file is read only if it has changed since its hash was noted in `folder`, by
/// path, inode, size and time: one note for all files that are asked for together, and the older
/// ones of one file each. Where notes cannot be written, nothing is noted. `look` is called with
/// the files that are to be read, before that. Throws IoError, and as `look`.
std::vector<TextContent> contents_of(const std::filesystem::path& folder, const FileList& files,
                                     const std::function<void(const FileList& unread)>& look);

}  // namespace phalanx
