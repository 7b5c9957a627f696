// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstddef>
#include <string_view>

namespace phalanx {

/// A piece of a text, well-formed UTF-8 and not empty.
struct TextPiece {
  std::string_view text;
  /// Bytes at its beginning that stand for the first character of the whole document (Normalizer).
  std::size_t at_start = 0;
};

/// Cuts a text into the pieces that a model encodes one by one, as the package tokenizers does.
/// Thread-safe.
class PreTokenizer {
 public:
  using Take = c10::function_ref<void(const TextPiece& piece)>;

  virtual ~PreTokenizer() = default;

  /// Calls `take` with each piece of `piece`, one after the other. Their texts live until it
  /// returns.
  virtual void cut(const TextPiece& piece, Take take) const = 0;

  /// Whether a text can be cut in two at every place of `cut_behind_letter`: a piece ends there,
  /// and the pieces behind it are those that the second part has by itself.
  virtual bool cuts_behind_letters() const { return false; }

  /// Whether each cut depends on the two characters beside it alone, and no character changes: of a
  /// text in two parts only the piece that both share is another than that of the whole.
  virtual bool looks_beside_cuts_alone() const { return false; }

  /// Whether the pieces depend on where the document begins (TextPiece::at_start).
  virtual bool asks_for_start() const { return false; }
};

}  // namespace phalanx
