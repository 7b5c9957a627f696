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
  std::string place;    ///< For messages: "'prompts.jsonl', line 3", or "--prompt".
  bool is_text = true;  ///< Whether it came as text, and not as tokens.
  std::string text;
  std::vector<int32_t> tokens;  ///< As it came; those of `text` are made by `encode_prompts`.
  nlohmann::ordered_json line;  ///< The object of a line of JSONL.
  std::string problem;          ///< Why nothing is written for it; empty where all is well.
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

/// What stands around a prompt's own tokens.
struct PromptFrame {
  std::optional<int64_t> start = {};  ///< An empty prompt is this token.
  std::optional<int64_t> end = {};    ///< Behind each text.
};

/// Makes the tokens of those that came as text. One without tokens begins with the frame's; where
/// it has none, it gets a problem in JSONL, and is refused elsewhere. Throws UserError for a token
/// that the model does not know, and a text without a tokenizer.
void encode_prompts(PromptList& prompts, const Tokenizer* tokenizer, int64_t vocabulary_size,
                    const PromptFrame& frame);

/// Those of the prompts with these places among them, counted from 1: "prompts 2, 5-9".
std::string prompts_by_number(const std::vector<int64_t>& places);

}  // namespace phalanx
