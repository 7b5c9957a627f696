// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trainer/cli/command.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// What a text is asked for with.
struct Prompt {
  std::string place;            ///< For messages: "'prompts.jsonl', line 3", or "--prompt".
  std::string text;             ///< Empty where it came as tokens.
  std::vector<int32_t> tokens;  ///< As it came; those of `text` are made by `encode_prompts`.
  nlohmann::ordered_json line;  ///< Of JSONL: the object.
};

/// All prompts of a command line.
struct PromptList {
  bool are_json_lines = false;  ///< Then so are the answers.
  std::vector<Prompt> all;
};

/// Reads --prompt, --input, or standard input. A file whose name ends with .jsonl (perhaps packed)
/// has objects with the field `prompt`, a text, or `prompt_token_ids`, a list of numbers; any other
/// is one prompt. Throws UserError with file and line.
PromptList read_prompts(const Invocation& invocation);

/// Makes the tokens of those that came as text, with `end` behind them where it is given. Throws
/// UserError for one without tokens, one with a token that the model does not know, and a text
/// without a tokenizer.
void encode_prompts(PromptList& prompts, const Tokenizer* tokenizer, int64_t vocabulary_size,
                    const std::optional<int64_t>& end);

}  // namespace phalanx
