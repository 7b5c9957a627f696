// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/byte_alphabet.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "trainer/base/utf8.h"

namespace phalanx {
namespace {

constexpr int kBytes = 256;

// Whether a byte stands for itself, as a character of Latin-1.
constexpr bool is_visible(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

// The character of each byte: the invisible ones follow Latin-1, in their order.
constexpr std::array<uint16_t, kBytes> make_characters() {
  std::array<uint16_t, kBytes> characters{};
  uint16_t next = kBytes;
  for (int byte = 0; byte < kBytes; ++byte) {
    characters[byte] = is_visible(byte) ? static_cast<uint16_t>(byte) : next++;
  }
  return characters;
}

constexpr std::array<uint16_t, kBytes> kCharacters = make_characters();
constexpr int kCharactersEnd = *std::max_element(kCharacters.begin(), kCharacters.end()) + 1;

constexpr std::array<int16_t, kCharactersEnd> make_bytes() {
  std::array<int16_t, kCharactersEnd> bytes{};
  bytes.fill(-1);
  for (int byte = 0; byte < kBytes; ++byte) bytes[kCharacters[byte]] = static_cast<int16_t>(byte);
  return bytes;
}

constexpr std::array<int16_t, kCharactersEnd> kByteOf = make_bytes();

}  // namespace

std::optional<std::string> bytes_of_visible(std::string_view visible) {
  std::string bytes;
  while (!visible.empty()) {
    const size_t length = character_length(visible);
    if (length == 0 || length > 2) return std::nullopt;
    // The alphabet ends before U+0800: a character has one or two bytes.
    const auto first = static_cast<unsigned char>(visible[0]);
    const int character =
        length == 1 ? first : (first & 0x1F) << 6 | (static_cast<unsigned char>(visible[1]) & 0x3F);
    if (character >= kCharactersEnd || kByteOf[character] < 0) return std::nullopt;
    bytes += static_cast<char>(kByteOf[character]);
    visible.remove_prefix(length);
  }
  return bytes;
}

std::string visible_bytes(std::string_view bytes) {
  std::string visible;
  append_visible_bytes(bytes, visible);
  return visible;
}

void append_visible_bytes(std::string_view bytes, std::string& visible) {
  for (const char byte : bytes) {
    const uint16_t character = kCharacters[static_cast<unsigned char>(byte)];
    if (character < 0x80) {
      visible += static_cast<char>(character);
    } else {
      visible += static_cast<char>(0xC0 | character >> 6);
      visible += static_cast<char>(0x80 | (character & 0x3F));
    }
  }
}

}  // namespace phalanx
