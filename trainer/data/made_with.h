// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "trainer/config/tree/chosen.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// The tokenizer that tokens are read with.
struct ReadWith {
  std::string field;           ///< The option or config field that names it.
  std::filesystem::path name;  ///< As load_tokenizer takes it.
  const Tokenizer& tokenizer;
};

/// The tokenizer that the source's config names, or "bytes" where its tokens are bytes; empty where
/// it names none.
std::filesystem::path own_tokenizer_of(const config::Chosen& source);

/// What is wrong where `trainer tokenize` made the tokens of `folder` with another tokenizer, as
/// its tokens.json and tokenizer/ say; empty where it is the same or nothing is known.
std::string problem_of_tokens(const std::filesystem::path& folder, const ReadWith& with);

/// Throws UserError, beginning with `field`, where tokens of `source` are of another tokenizer: one
/// that the source names itself, or the one beside its files.
void require_made_with(const std::string& field, const config::Chosen& source,
                       const ReadWith& with);

}  // namespace phalanx
