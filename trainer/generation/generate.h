// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "models/interfaces/causal_language_model.h"
#include "models/interfaces/sequence_to_sequence_model.h"
#include "trainer/generation/generation_config.h"

namespace phalanx {

/// Why a text ends.
enum class FinishReason {
  length,       ///< It has max_new_tokens.
  eos,          ///< By a token that ends a text.
  stop,         ///< By one of the texts to stop at.
  interrupted,  ///< By the user.
};

/// "length", "eos", "stop" or "interrupted".
std::string_view to_string(FinishReason reason);

/// What was written.
struct Generated {
  std::vector<int32_t> tokens;  ///< Without a prompt, and without a token that ends the text.
  FinishReason reason = FinishReason::length;
};

/// What a text is written for.
struct GenerationInput {
  std::vector<int32_t> tokens;  ///< Not empty: a prompt to go on from, or a sequence to read.
  int64_t number = 0;  ///< Its draws follow from the seed and this, not from its place in a batch.
};

/// What the search for tokens asks while it writes a batch of texts. Every member is optional.
struct GenerationHooks {
  /// A text's next token; not in a beam search. Returns whether the text goes on behind it.
  std::function<bool(size_t text, int32_t token)> on_token = {};
  /// Whether a text of a beam search holds a text to stop at.
  std::function<bool(std::span<const int32_t> tokens)> is_stopped = {};
  /// Whether to end all texts as they are.
  std::function<bool()> is_interrupted = {};
  /// Whether any rank still writes, given whether this one does. Every rank writes a batch at the
  /// same time, and asks for each token, where a model lies on several; without it each writes for
  /// itself.
  std::function<bool(bool writes)> any_rank = {};
};

/// Which tokens may be written, and which end a text.
struct GenerationTokens {
  int64_t vocabulary_size = 0;       ///< The tokenizer's; the model may know more.
  std::vector<int64_t> end_of_text;  ///< Where the config has no eos_token_id.
};

/// Writes a batch of texts, in the order of the inputs. The model is in its mode for evaluation,
/// and no gradients are kept. LibTorch's default generators are not touched. Throws NotFinite.
std::vector<Generated> generate(CausalLanguageModel& model, std::span<const GenerationInput> inputs,
                                const GenerationTokens& tokens, const GenerationConfig& config,
                                const GenerationHooks& hooks = {});
std::vector<Generated> generate(SequenceToSequenceModel& model,
                                std::span<const GenerationInput> inputs,
                                const GenerationTokens& tokens, const GenerationConfig& config,
                                const GenerationHooks& hooks = {});

}  // namespace phalanx
