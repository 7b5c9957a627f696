// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/unicode/characters.h"

#include <algorithm>

#include "trainer/base/utf8.h"

namespace phalanx::unicode {

Character character_at(std::string_view text, std::size_t place) {
  const auto byte = [&](std::size_t i) -> char32_t {
    return place + i < text.size() ? static_cast<unsigned char>(text[place + i]) : 0;
  };
  const auto rest = [&](std::size_t i) { return byte(i) & 0x3F; };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {.code = lead, .length = 1};
  if (lead < 0xE0) return {.code = (lead & 0x1F) << 6 | rest(1), .length = 2};
  if (lead < 0xF0) return {.code = (lead & 0x0F) << 12 | rest(1) << 6 | rest(2), .length = 3};
  return {.code = (lead & 0x07) << 18 | rest(1) << 12 | rest(2) << 6 | rest(3), .length = 4};
}

std::size_t last_character_length(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && continues_character(text[text.size() - length])) ++length;
  return length;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); }));
}

void append_character(char32_t code, std::string& text) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  const auto put_rest = [&](int shift) { put(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put_rest(0);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put_rest(6);
    put_rest(0);
  } else {
    put(0xF0 | code >> 18);
    put_rest(12);
    put_rest(6);
    put_rest(0);
  }
}

}  // namespace phalanx::unicode
