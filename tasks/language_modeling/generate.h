// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "models/interfaces/causal_language_model.h"

namespace phalanx {

/// `prompt` and `tokens` bytes more, each drawn from the model's softmax at `temperature` (0: the
/// likeliest byte). The model sees the last context_length bytes. `seed` alone decides the draws:
/// the default generator is not touched. `prompt` must not be empty. Throws
/// NoSample where the probabilities are not finite.
std::string generate_bytes(CausalLanguageModel& model, const std::string& prompt, int64_t tokens,
                           double temperature, uint64_t seed);

}  // namespace phalanx
