// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace phalanx {

/// The byte that a token such as "<0x0A>" stands for.
std::optional<char> byte_of_token(std::string_view text);

/// The tokens "<0x00>" to "<0xFF>" of a vocabulary, for characters that are no token themselves.
class ByteTokens {
 public:
  ByteTokens() { tokens_.fill(kNone); }
  explicit ByteTokens(const std::function<std::optional<int32_t>(std::string_view text)>& token_of);

  /// Whether each byte has one.
  bool is_whole() const;

  /// Appends the tokens of a text's bytes; nothing, and false, where one has none.
  bool append(std::string_view text, std::vector<int32_t>& tokens) const;

 private:
  static constexpr int32_t kNone = -1;

  std::array<int32_t, 256> tokens_{};
};

}  // namespace phalanx
