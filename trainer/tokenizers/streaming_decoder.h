// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// Decodes tokens one by one, as a model draws them. What it returns is whole characters; put
/// together, they are the text that `decode` returns.
class StreamingDecoder {
 public:
  /// `tokenizer` must live longer than this.
  explicit StreamingDecoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  /// The text that this token completes; perhaps none.
  std::string add(int32_t token);

  /// The rest: U+FFFD for half a character that no token completed.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  std::string bytes_;  // Not returned yet.
  DecodingState state_;
};

}  // namespace phalanx
