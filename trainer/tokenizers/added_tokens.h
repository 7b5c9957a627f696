// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// A token whose text is found in a text before anything else is done with it.
struct AddedToken {
  int32_t token = 0;
  std::string text;         ///< Not empty.
  bool is_special = false;  ///< Found only with SpecialText::token.
};

/// The added tokens of a tokenizer. Thread-safe.
class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  /// An added token in a text.
  struct Match {
    size_t begin = 0;
    size_t end = 0;
    int32_t token = 0;
  };

  /// The first in text[from, …); of those that begin there, the longest.
  std::optional<Match> find(std::string_view text, size_t from, SpecialText special) const;

  /// The token with this text.
  std::optional<int32_t> token_of(std::string_view text) const;

  /// One more than the largest token; 0 without any.
  int32_t size() const;

  /// Bytes of the longest that is not special; 0 without any.
  std::size_t longest_ordinary() const;

  /// The text of a token, if it is an added one.
  std::optional<std::string_view> text_of(int32_t token) const;

 private:
  std::vector<AddedToken> tokens_;  // Longest text first.
  // Whether a text begins with this byte: at most places nothing is compared.
  std::array<bool, 256> begins_any_{};
  std::array<bool, 256> begins_ordinary_{};  // One that is not special.
};

}  // namespace phalanx
