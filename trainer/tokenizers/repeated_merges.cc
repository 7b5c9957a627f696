// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/repeated_merges.h"

#include "trainer/tokenizers/byte_level_bpe.h"
#include "trainer/tokenizers/character_bpe.h"

namespace phalanx {

bool repeats_merges(const Tokenizer& tokenizer) {
  // Version 0.1 read no others that have merges.
  if (const auto* bytes = dynamic_cast<const ByteLevelBpe*>(&tokenizer)) {
    return bytes->merges().repeat_pairs();
  }
  const auto* characters = dynamic_cast<const CharacterBpe*>(&tokenizer);
  return characters != nullptr && characters->merges().repeat_pairs();
}

}  // namespace phalanx
