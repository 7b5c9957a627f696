// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

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

/// The tokenizer that `name` names: "bytes"; one of its files, the others of which lie beside it;
/// or a folder with them, in which the first of these is taken: spiece.model; tokenizer.json (and
/// the end-of-text token of tokenizer_config.json); encoder.json with vocab.bpe; vocab.json with
/// merges.txt; tokenizer.model; characters.txt, whose characters are the tokens. A file whose name
/// ends in .model is SentencePiece's. Throws UserError, beginning with `field`, the
/// option or config field that names it.
LoadedTokenizer load_tokenizer(const std::string& field, const std::filesystem::path& name);

/// The tokenizer whose tokens are these characters, which are well-formed UTF-8.
LoadedTokenizer character_tokenizer(std::string_view characters);

}  // namespace phalanx
