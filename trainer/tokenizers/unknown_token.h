// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/tokenizers/loaded_tokenizer.h"

namespace phalanx {

/// The token into which a tokenizer makes what it has no other for.
struct UnknownToken {
  int32_t token = 0;
  std::string text;  ///< "<unk>", say.
};

/// That of a tokenizer.json or of a model of SentencePiece that names one; nothing of any other,
/// which has a token for all texts or refuses them.
std::optional<UnknownToken> unknown_token(const LoadedTokenizer& loaded);

}  // namespace phalanx
