// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "models/interfaces/causal_language_model.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// The bytes of `prompt` and of `tokens` tokens more, each drawn from the model's softmax at
/// `temperature` (0: the likeliest one), out of those that the tokenizer knows. The model sees the
/// last context_length tokens. `seed` alone decides the draws: the default generator is not
/// touched. `prompt` must not be empty. Throws NoSample where the probabilities are not finite.
std::string generate_text(CausalLanguageModel& model, const Tokenizer& tokenizer,
                          const std::string& prompt, int64_t tokens, double temperature,
                          uint64_t seed);

}  // namespace phalanx
