// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/generation/generate.h"
#include "trainer/generation/generation_config.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// A model that writes texts.
struct TextModel {
  std::variant<CausalLanguageModel*, SequenceToSequenceModel*> model;
  const Tokenizer* tokenizer = nullptr;  ///< None: the texts are tokens alone, `text` stays empty.
  std::vector<int64_t> end_of_text;      ///< Tokens that end a text where the config names none.
};

/// What the model wrote.
struct GeneratedText {
  std::string text;  ///< Well-formed UTF-8, without the prompt.
  std::vector<int32_t> tokens;
  FinishReason reason = FinishReason::length;
};

/// As GenerationHooks.
struct TextHooks {
  /// Gives out a text as it is written, in whole characters; not in a beam search.
  std::function<void(size_t text, std::string_view part)> on_text = {};
  std::function<bool()> is_interrupted = {};
  std::function<bool(bool writes)> any_rank = {};
};

/// Writes a text for each input of a batch, in their order. See `generate`.
std::vector<GeneratedText> generate_texts(const TextModel& model,
                                          std::span<const GenerationInput> inputs,
                                          const GenerationConfig& config,
                                          const TextHooks& hooks = {});

}  // namespace phalanx
