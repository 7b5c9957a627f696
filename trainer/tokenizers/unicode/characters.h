// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace phalanx::unicode {

/// A character of a text, and its bytes.
struct Character {
  char32_t code = 0;
  std::size_t length = 1;
};

/// The character that begins at text[place]. The text must be well-formed UTF-8.
Character character_at(std::string_view text, std::size_t place);

/// Bytes of the last character of a text that is not empty and well-formed UTF-8.
std::size_t last_character_length(std::string_view text);

/// How many characters a well-formed text has.
std::size_t count_characters(std::string_view text);

/// Appends a character to a text.
void append_character(char32_t code, std::string& text);

}  // namespace phalanx::unicode
