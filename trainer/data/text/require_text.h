// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/io/file_list.h"

namespace phalanx {

/// So many of a file's first bytes show whether it is text.
inline constexpr size_t kShowsText = 4096;

/// Whether files that are no text are read all the same.
struct AnyBytes {
  bool are_allowed = false;
  std::string allowed_by = {};  ///< What allows them, for messages: "--any-bytes"; empty: nothing.
};

/// What is wrong with a file, to stand behind its path: "is a Parquet file, not text in UTF-8: …".
/// `begin` are its first bytes (kShowsText, or all). It is of a known format, or more than a tenth
/// of them, and at least 16, are no text (bytes_of_no_text). None: it may be text.
std::optional<std::string> no_text_problem(std::string_view begin);

/// Throws UserError for such a file, with its path and what allows it, unless that is given.
void require_text(const std::filesystem::path& file, std::string_view begin,
                  const AnyBytes& any_bytes);

/// Whether packed files (gzip, Zstandard) are looked into, or read as they lie there.
enum class Packed { unpacked, as_they_are };

/// The same for files by their first bytes: of all up to 1000; of more, of up to 1000 with the
/// names of known formats and of 1000 others, evenly spread. One that cannot be opened is left to
/// who reads it.
void require_texts(const FileList& files, Packed packed, const AnyBytes& any_bytes);

}  // namespace phalanx
