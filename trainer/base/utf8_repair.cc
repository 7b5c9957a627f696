// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/utf8_repair.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "trainer/base/utf8.h"

namespace phalanx {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Whether some bytes after `text`, which is no character itself, would make it one.
bool begins_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (text.size() == 1) return lead >= 0xC2 && lead <= 0xF4;
  // From the third byte on, every byte that continues a character will do.
  std::string completed(text);
  completed.resize(4, '\x80');
  return character_length(completed) > text.size();
}

// Bytes at the beginning of `text`, which begins with no character, that U+FFFD replaces.
std::size_t broken_length(std::string_view text) {
  std::size_t length = std::min<std::size_t>(text.size(), 3);
  while (length > 1 && !begins_character(text.substr(0, length))) --length;
  return length;
}

std::size_t ascii_length(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  std::size_t length = 0;
  for (; length + sizeof(uint64_t) <= text.size(); length += sizeof(uint64_t)) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, text.data() + length, sizeof bytes);
    if ((bytes & kHighBits) != 0) break;
  }
  while (length < text.size() && static_cast<unsigned char>(text[length]) < 0x80) ++length;
  return length;
}

}  // namespace

std::size_t well_formed_length(std::string_view text) {
  std::size_t length = 0;
  while (true) {
    length += ascii_length(text.substr(length));
    const std::size_t next = character_length(text.substr(length));
    if (next == 0) return length;
    length += next;
  }
}

std::size_t unfinished_length(std::string_view text) {
  for (std::size_t length = 1; length <= std::min<std::size_t>(text.size(), 3); ++length) {
    const std::string_view end = text.substr(text.size() - length);
    if (continues_character(end.front())) continue;
    return character_length(end) == 0 && begins_character(end) ? length : 0;
  }
  return 0;
}

std::string repaired_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (true) {
    const std::size_t length = well_formed_length(text);
    result += text.substr(0, length);
    text.remove_prefix(length);
    if (text.empty()) return result;
    result += kReplacement;
    text.remove_prefix(broken_length(text));
  }
}

}  // namespace phalanx
