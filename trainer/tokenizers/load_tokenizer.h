// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/tokenizers/loaded_tokenizer.h"

namespace phalanx {

/// The tokenizer that `name` names: "bytes"; one of its files, the others of which lie beside it;
/// or a folder with them, in which the first of these is taken: spiece.model; tokenizer.json (and
/// the end-of-text token of tokenizer_config.json); encoder.json with vocab.bpe; vocab.json with
/// merges.txt; tokenizer.model; characters.txt, whose characters are the tokens. A file whose name
/// ends in .model is SentencePiece's. Throws UserError, beginning with `field`, the option or
/// config field that names it.
LoadedTokenizer load_tokenizer(const std::string& field, const std::filesystem::path& name);

/// Those of a folder's file names that load_tokenizer reads in it. None: the folder holds no
/// tokenizer.
std::vector<std::string> tokenizer_file_names(std::span<const std::string> names);

}  // namespace phalanx
