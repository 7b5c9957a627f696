// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/unicode/graphemes.h"

#include <utf8proc.h>

#include "trainer/tokenizers/unicode/characters.h"

namespace phalanx::unicode {

std::size_t grapheme_length(std::string_view text, std::size_t place) {
  Character last = character_at(text, place);
  std::size_t end = place + last.length;
  utf8proc_int32_t state = 0;
  while (end < text.size()) {
    const Character next = character_at(text, end);
    // Between two characters of ASCII only a line break of two is one cluster.
    if (last.code < 0x80 && next.code < 0x80 && !(last.code == '\r' && next.code == '\n')) break;
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.code),
                                         static_cast<utf8proc_int32_t>(next.code), &state)) {
      break;
    }
    end += next.length;
    last = next;
  }
  return end - place;
}

}  // namespace phalanx::unicode
