// SPDX-License-Identifier: Apache-2.0
#include "tasks/language_modeling/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "trainer/base/utf8.h"

namespace phalanx {

std::string printable(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t length = character_length(bytes);
    const std::string_view character = bytes.substr(0, std::max<size_t>(length, 1));
    if (character == "\\") {
      text += "\\\\";
    } else if (character == "\n" || (length > 0 && !is_control(character))) {
      text += character;
    } else {
      for (const char byte : character) {
        fmt::format_to(std::back_inserter(text), "\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
    bytes.remove_prefix(character.size());
  }
  return text;
}

}  // namespace phalanx
