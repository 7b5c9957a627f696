// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace phalanx {

/// Length in bytes of the well-formed UTF-8 character that a text begins with; 0: there is none.
std::size_t character_length(std::string_view text);

/// Whether a byte is one of a character's that are not its first.
bool continues_character(char c);

/// Whether a terminal obeys a character instead of showing it: ASCII's controls, and C1's.
bool is_control(std::string_view character);

/// The first bytes of a text, at most so many, without a part of a character at their end.
std::string_view first_bytes(std::string_view text, std::size_t most);

/// A text as one line of a message: control characters become spaces, and what is no UTF-8 becomes
/// U+FFFD, one for each byte. A character stays one character.
std::string single_line(std::string_view text);

}  // namespace phalanx
