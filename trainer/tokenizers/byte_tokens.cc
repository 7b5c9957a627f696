// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/byte_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace phalanx {

// A "+" before one digit is a sign, as Rust reads numbers.
std::optional<char> byte_of_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return std::nullopt;
  const char* const begin = text.data() + (text[3] == '+' ? 4 : 3);
  const char* const end = text.data() + 5;
  unsigned byte = 0;
  if (*begin == '-' || std::from_chars(begin, end, byte, 16).ptr != end) return std::nullopt;
  return static_cast<char>(byte);
}

ByteTokens::ByteTokens(
    const std::function<std::optional<int32_t>(std::string_view text)>& token_of) {
  for (int byte = 0; byte < 256; ++byte) {
    tokens_[byte] = token_of(fmt::format("<0x{:02X}>", byte)).value_or(kNone);
  }
}

bool ByteTokens::is_whole() const {
  return std::find(tokens_.begin(), tokens_.end(), kNone) == tokens_.end();
}

bool ByteTokens::append(std::string_view text, std::vector<int32_t>& tokens) const {
  const auto token_of = [&](char byte) { return tokens_[static_cast<unsigned char>(byte)]; };
  const auto has_none = [&](char byte) { return token_of(byte) == kNone; };
  if (std::any_of(text.begin(), text.end(), has_none)) return false;
  for (const char byte : text) tokens.push_back(token_of(byte));
  return true;
}

}  // namespace phalanx
