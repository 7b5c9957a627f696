// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// The file of a CharacterTokenizer.
inline constexpr const char* kCharactersFile = "characters.txt";

/// A file that a tokenizer is read from.
struct TokenizerFile {
  std::string name;  ///< Without a folder.
  std::string content;
};

/// A tokenizer and what it comes from: a folder with its files makes it again.
struct LoadedTokenizer {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::string format;                ///< "tokenizer.json", say.
  std::vector<TokenizerFile> files;  ///< Perhaps none.
};

/// The tokenizer whose tokens are these characters. Throws as CharacterTokenizer.
LoadedTokenizer character_tokenizer(std::string_view characters);

}  // namespace phalanx
