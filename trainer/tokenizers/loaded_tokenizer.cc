// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/loaded_tokenizer.h"

#include "trainer/tokenizers/character_tokenizer.h"

namespace phalanx {

LoadedTokenizer character_tokenizer(std::string_view characters) {
  const auto tokenizer = std::make_shared<CharacterTokenizer>(characters);
  return {.tokenizer = tokenizer,
          .format = kCharactersFile,
          .files = {{.name = kCharactersFile, .content = tokenizer->characters()}}};
}

}  // namespace phalanx
