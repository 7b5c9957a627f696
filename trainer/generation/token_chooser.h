// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <stdexcept>

#include "trainer/generation/generation_config.h"

namespace phalanx {

/// A model's logits or probabilities that no token can be chosen by: they are not finite.
class NotFinite : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Divides the logits of tokens that `text` holds by `penalty`, or multiplies them where they are
/// below 0 (Keskar et al. 2019, section 4.1). `logits` is [vocabulary], and stays as it is.
at::Tensor penalized(const at::Tensor& logits, std::span<const int32_t> text, double penalty);

/// The probabilities that the config has a token drawn by: of logits [vocabulary], float64 on the
/// host. Temperature, then top_k, then top_p, as in transformers (logits_process.py).
at::Tensor probabilities_of(const at::Tensor& logits, const GenerationConfig& config);

/// The next token behind `text`: the likeliest, or one that `generator` draws. `logits` is
/// [vocabulary], and finite.
int32_t choose_token(const at::Tensor& logits, std::span<const int32_t> text,
                     const GenerationConfig& config, const at::Generator& generator);

/// Throws NotFinite unless a token can be chosen by each row of logits [..., vocabulary]: none is
/// NaN or infinite, except those of tokens that are forbidden, which are -inf.
void require_finite(const at::Tensor& logits);

}  // namespace phalanx
