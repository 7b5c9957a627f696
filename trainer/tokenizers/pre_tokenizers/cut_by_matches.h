// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "trainer/tokenizers/patterns/split_behavior.h"
#include "trainer/tokenizers/pre_tokenizers/pre_tokenizer.h"
#include "trainer/tokenizers/unicode/characters.h"

namespace phalanx {

/// piece[begin, end) as a piece.
inline TextPiece part_of(const TextPiece& piece, std::size_t begin, std::size_t end) {
  return {.text = piece.text.substr(begin, end - begin),
          .at_start = std::min(piece.at_start, end) - std::min(piece.at_start, begin)};
}

/// How matches cut a piece.
struct CutRule {
  SplitBehavior behavior = SplitBehavior::isolated;
  bool is_inverted = false;  ///< What lies between the matches counts as a match.
};

/// Cuts a piece by the matches that find_all(take(begin, end)) finds.
template <typename FindAll>
void cut_by_matches(const TextPiece& piece, CutRule rule, PreTokenizer::Take take,
                    const FindAll& find_all) {
  const auto take_piece = [&](std::size_t begin, std::size_t end) {
    if (begin < end) take(part_of(piece, begin, end));
  };
  PartsToPieces pieces(rule.behavior, take_piece);
  std::size_t done = 0;
  const auto add_gap = [&](std::size_t end) {
    if (done < end) pieces.add({.begin = done, .end = end, .is_match = rule.is_inverted});
  };
  find_all([&](std::size_t begin, std::size_t end) {
    add_gap(begin);
    pieces.add({.begin = begin, .end = end, .is_match = !rule.is_inverted});
    done = end;
  });
  add_gap(piece.text.size());
  pieces.finish();
}

/// Cuts a piece at each of its characters that `is_match` holds for.
template <typename IsMatch>
void cut_at_characters(const TextPiece& piece, SplitBehavior behavior, PreTokenizer::Take take,
                       const IsMatch& is_match) {
  cut_by_matches(piece, {.behavior = behavior}, take, [&](const auto& found) {
    for (std::size_t place = 0; place < piece.text.size();) {
      const unicode::Character character = unicode::character_at(piece.text, place);
      if (is_match(character.code)) found(place, place + character.length);
      place += character.length;
    }
  });
}

}  // namespace phalanx
