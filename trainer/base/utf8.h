#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace phalanx::config {

/// Length in bytes of the well-formed UTF-8 character that a text begins with; 0: there is none.
std::size_t character_length(std::string_view text);

/// Whether a byte is one of a character's that are not its first.
bool continues_character(char c);

/// A text as one line of a message: control characters become spaces, and what is no UTF-8 becomes
/// U+FFFD, one for each byte. A character stays one character.
std::string printable(std::string_view text);

}  // namespace phalanx::config
