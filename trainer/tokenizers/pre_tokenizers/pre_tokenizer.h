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
};

}  // namespace phalanx
