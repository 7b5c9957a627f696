// SPDX-License-Identifier: Apache-2.0
// In tools/fuzz alone, which has no SentencePiece: its targets use other tokenizers, which have a
// token for all texts.

#include "trainer/tokenizers/unknown_token.h"

namespace phalanx {

std::optional<UnknownToken> unknown_token(const LoadedTokenizer& /*loaded*/) {
  return std::nullopt;
}

}  // namespace phalanx
