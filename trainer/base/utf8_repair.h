// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace phalanx {

/// Bytes of the longest well-formed UTF-8 text that `text` begins with.
std::size_t well_formed_length(std::string_view text);

/// Bytes at the end of `text` that begin a character whose other bytes are missing; 0 to 3.
std::size_t unfinished_length(std::string_view text);

/// `text` as well-formed UTF-8: U+FFFD stands for each part that is none. A part is as long as it
/// could begin a character, so that half a character counts once (Unicode 15, section 3.9, "U+FFFD
/// Substitution of Maximal Subparts"; the same as Python's errors="replace").
std::string repaired_utf8(std::string_view text);

}  // namespace phalanx
