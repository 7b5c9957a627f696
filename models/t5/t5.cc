// SPDX-License-Identifier: Apache-2.0
#include "models/t5/t5.h"

#include <ATen/TensorOperators.h>

#include <cmath>

#include "trainer/config/tree/schema.h"
#include "trainer/registry/kinds.h"

namespace phalanx {

T5::T5(const Config& config)
    : config_(config),
      shared_(register_module(
          "shared", Embedding(config.vocab_size, config.d_model, config.initializer_factor,
                              config.tie_word_embeddings ? TableUse::whole : TableUse::rows))),
      encoder_(register_module("encoder", t5::Stack(config, t5::Side::encoder))),
      decoder_(register_module("decoder", t5::Stack(config, t5::Side::decoder))),
      lm_head_(nullptr) {
  if (config.tie_word_embeddings) return;
  const LinearOptions options{
      .has_bias = false, .initial_std = config.initializer_factor, .is_head = true};
  lm_head_ = register_module("lm_head", Linear(config.d_model, config.vocab_size, options));
}

at::Tensor T5::embed(const at::Tensor& tokens) {
  return shared_(tokens.to(shared_->weight.device()));
}

// [batch, input length] to [batch, 1, 1, input length].
at::Tensor T5::attention_mask(const at::Tensor& mask) const {
  if (!mask.defined()) return mask;
  return mask.to(shared_->weight.device()).unsqueeze(1).unsqueeze(1);
}

at::Tensor T5::encode(const at::Tensor& inputs, const at::Tensor& mask) {
  return encoder_(embed(inputs), attention_mask(mask), /*encoded=*/at::Tensor(),
                  /*cache=*/nullptr);
}

HiddenStates T5::decode(const at::Tensor& outputs, const at::Tensor& encoded,
                        const at::Tensor& mask) {
  return states(outputs, encoded, mask, /*cache=*/nullptr);
}

std::optional<HiddenStates> T5::next_states(const at::Tensor& outputs, const at::Tensor& encoded,
                                            const at::Tensor& mask, DecoderCache& cache) {
  return states(outputs, encoded, mask, &cache);
}

HiddenStates T5::states(const at::Tensor& outputs, const at::Tensor& encoded,
                        const at::Tensor& mask, DecoderCache* cache) {
  at::Tensor states = decoder_(embed(outputs), attention_mask(mask), encoded, cache);
  if (config_.scale_decoder_outputs) {
    states = states * std::pow(static_cast<double>(config_.d_model), -0.5);
  }
  const at::Tensor& head = lm_head_.is_empty() ? shared_->weight : lm_head_->weight();
  return {.states = states, .head = head};
}

std::string_view T5::why_no_stages() const {
  return "t5 has no stages, as every block of its decoder needs the result of the whole encoder";
}

REGISTER_MODEL("t5", T5);

}  // namespace phalanx
