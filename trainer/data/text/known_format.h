// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace phalanx {

/// A format of files that hold no text, or text that is not UTF-8.
struct KnownFormat {
  std::string_view name;    ///< "a Parquet file"
  std::string_view advice;  ///< How to get text of it, or what to name in its place.
};

/// The format that the first bytes of a file show; 4096 of them, or all, are enough.
std::optional<KnownFormat> known_format(std::string_view begin);

/// Whether a file with this name is most often of such a format, or of one that nothing shows.
bool has_name_of_known_format(std::string_view path);

/// Bytes of a text's beginning that no text in UTF-8 has: parts of no character, and control
/// characters other than those of layout, bell, backspace and escape. A character that the end cuts
/// does not count.
size_t bytes_of_no_text(std::string_view begin);

}  // namespace phalanx
