// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/tokenizers/unicode/characters.h"

namespace phalanx {

/// A text, well-formed UTF-8, that normalizers change.
struct NormalizedText {
  std::string text;
  /// Bytes at its beginning that stand for the first character of the whole document; 0 where that
  /// is gone, or stands elsewhere. A Metaspace may ask.
  std::size_t at_start = 0;
  /// How many bytes it may become: a broken file must not take all memory.
  std::size_t most_bytes = SIZE_MAX;
};

/// Changes a text before it is cut into words, as the package tokenizers does. Thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  virtual void apply(NormalizedText& text) const = 0;

  /// Whether a text cut at a place of `cut_behind_letter` becomes what its two parts become, one
  /// after the other, with the same two characters beside the cut.
  virtual bool keeps_cuts() const { return false; }
};

/// Makes a text anew, character by character: `append(code, bytes, result)` appends what becomes of
/// each.
template <typename Append>
void replace_characters(NormalizedText& text, const Append& append) {
  std::string result;
  result.reserve(text.text.size());
  std::size_t at_start = 0;
  for (std::size_t place = 0; place < text.text.size();) {
    const unicode::Character character = unicode::character_at(text.text, place);
    append(character.code, std::string_view(text.text).substr(place, character.length), result);
    place += character.length;
    if (place <= text.at_start) at_start = result.size();
  }
  text.text = std::move(result);
  text.at_start = at_start;
}

}  // namespace phalanx
