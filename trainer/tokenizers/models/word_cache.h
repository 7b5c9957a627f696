// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace phalanx {

/// Remembers the tokens of short pieces that a model has encoded, since most pieces come again and
/// again. Each thread has memory of its own, a few megabytes for all models together; a newer piece
/// takes the place of an older one.
class WordCache {
 public:
  WordCache();
  // A copy would be another model's.
  WordCache(const WordCache&) = delete;
  WordCache& operator=(const WordCache&) = delete;

  /// Appends the tokens of a piece: those remembered, or what `encode(piece, tokens)` appends.
  template <typename Encode>
  void encode(std::string_view piece, std::vector<int32_t>& tokens, const Encode& encode) const {
    Slot* const slot = slot_of(piece);
    if (slot != nullptr && holds(*slot, piece)) {
      tokens.insert(tokens.end(), slot->tokens, slot->tokens + slot->count);
      return;
    }
    const std::size_t begin = tokens.size();
    encode(piece, tokens);
    if (slot != nullptr) remember(*slot, piece, tokens.data() + begin, tokens.size() - begin);
  }

 private:
  static constexpr std::size_t kLongestPiece = 46;
  static constexpr std::size_t kMostTokens = 8;

  struct Slot {
    uint64_t owner = 0;  // 0: nobody's.
    uint8_t size = 0;
    uint8_t count = 0;
    char piece[kLongestPiece] = {};
    int32_t tokens[kMostTokens] = {};
  };

  Slot* slot_of(std::string_view piece) const;
  bool holds(const Slot& slot, std::string_view piece) const;
  void remember(Slot& slot, std::string_view piece, const int32_t* tokens, std::size_t count) const;

  uint64_t owner_;
};

}  // namespace phalanx
