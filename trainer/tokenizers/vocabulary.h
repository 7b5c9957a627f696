// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// The hash of a short text; fast.
struct TextHash {
  size_t operator()(std::string_view text) const;
};

/// Texts to numbers. The texts live elsewhere.
using TokenOfText = ska::flat_hash_map<std::string_view, int32_t, TextHash>;

/// Tokens and the text of each. Not every number below `size()` need be one.
class Vocabulary {
 public:
  struct Entry {
    int32_t token = 0;
    std::string text;
  };

  /// The largest token that there may be, far beyond every tokenizer's: a broken file must not take
  /// all memory.
  static constexpr int32_t kLargest = (1 << 22) - 1;

  /// Throws std::invalid_argument, saying which, for a token out of [0, kLargest] and for tokens or
  /// texts that appear twice.
  explicit Vocabulary(std::vector<Entry> entries);
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  /// One more than the largest token.
  int32_t size() const { return static_cast<int32_t>(texts_.size()); }

  /// How many tokens it has.
  size_t count() const { return tokens_.size(); }

  /// The text of a token, if it is one. It lives as long as the vocabulary.
  std::optional<std::string_view> text_of(int32_t token) const;

  /// The token of a text, if it has one.
  std::optional<int32_t> find(std::string_view text) const;

 private:
  std::vector<std::optional<std::string>> texts_;
  TokenOfText tokens_;  // By the texts above.
};

}  // namespace phalanx
