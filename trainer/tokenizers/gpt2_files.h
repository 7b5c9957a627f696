// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// GPT-2's tokenizer from the texts of its two files: a JSON object of tokens (encoder.json or
/// vocab.json) and a list of merges (vocab.bpe or merges.txt). "<|endoftext|>" is special, if it is
/// a token. Throws UserError, without the files' names.
std::shared_ptr<const Tokenizer> parse_gpt2_files(std::string_view encoder,
                                                  std::string_view merges);

}  // namespace phalanx
