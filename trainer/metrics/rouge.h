// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace phalanx {

/// ROUGE (Lin 2004): F-measures in [0, 1], to the last bit what Google's Python package rouge_score
/// 0.1.2 computes without a stemmer. They count words: runs of a-z and 0-9 in the text in lower
/// case, which any other character separates.
struct Rouge {
  double rouge1 = 0;   ///< Words of both texts.
  double rouge2 = 0;   ///< Pairs of neighbouring words of both.
  double rouge_l = 0;  ///< Their longest common subsequence; the end of a line is only a space.
  /// The union, for each line of the reference, of its longest common subsequences with the lines
  /// of the text. No word counts more often than it is in the text.
  double rouge_lsum = 0;
};

/// Compares a text with its reference, both UTF-8; bytes that are not UTF-8 separate words. All is
/// 0 if either has no word. For lines (rouge_l: texts) of n and m words it takes n m steps, for
/// rouge_lsum also n m bits of memory.
Rouge rouge(std::string_view text, std::string_view reference);

/// Whether two texts are the same, except for ASCII white space at their ends.
bool is_exact_match(std::string_view text, std::string_view reference);

}  // namespace phalanx
