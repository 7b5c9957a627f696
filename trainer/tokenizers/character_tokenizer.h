// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// Each character is a token, numbered in the order of Unicode, as in nanoGPT
/// (data/shakespeare_char/prepare.py).
class CharacterTokenizer final : public Tokenizer {
 public:
  /// The characters of a text. Throws UserError where it is empty or no UTF-8.
  explicit CharacterTokenizer(std::string_view text);
  CharacterTokenizer(const CharacterTokenizer&) = delete;
  CharacterTokenizer& operator=(const CharacterTokenizer&) = delete;

  /// Throws UserError for a character that is no token, which it names.
  void encode(std::string_view text, SpecialText special,
              std::vector<int32_t>& tokens) const override;
  void append_bytes(int32_t token, DecodingState& state, std::string& bytes) const override;
  std::size_t last_cut(std::string_view text) const override;
  int32_t vocabulary_size() const override { return static_cast<int32_t>(characters_.size()); }
  std::optional<int32_t> end_of_text() const override { return std::nullopt; }

  /// All characters in their order: the text that makes this tokenizer again.
  std::string characters() const;

 private:
  std::vector<std::string> characters_;
  std::unordered_map<std::string_view, int32_t> tokens_;  // By the characters above.
};

}  // namespace phalanx
