// SPDX-License-Identifier: Apache-2.0
#include "models/llama/llama.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <torch/nn/modules/container/modulelist.h>

#include <stdexcept>
#include <string>

#include "models/layers/document_mask.h"
#include "models/layers/embedding.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

RotaryPositions rotary_of(const llama::Config& config) {
  std::optional<RotaryScaling> scaling;
  if (const auto& given = config.rope_scaling) {
    scaling = RotaryScaling{.factor = given->factor,
                            .low_freq_factor = given->low_freq_factor,
                            .high_freq_factor = given->high_freq_factor,
                            .original_length = given->original_max_position_embeddings};
  }
  return RotaryPositions(config.head_width(), config.rope_theta, scaling);
}

}  // namespace

Llama::Llama(const Config& config)
    : config_(config),
      rotary_(rotary_of(config)),
      embed_tokens_(register_module(
          "embed_tokens",
          make_embedding(config.vocab_size, config.hidden_size, config.initializer_range))),
      norm_(nullptr),
      lm_head_(nullptr) {
  auto list = register_module("layers", torch::nn::ModuleList());
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    blocks_.emplace_back(config);
    list->push_back(blocks_.back());
  }
  norm_ = register_module("norm", RmsNorm(config.hidden_size, config.rms_norm_eps));
  if (config.tie_word_embeddings) return;
  const LinearOptions options{
      .has_bias = false, .initial_std = config.initializer_range, .is_head = true};
  lm_head_ = register_module("lm_head", Linear(config.hidden_size, config.vocab_size, options));
}

at::Tensor Llama::logits(const at::Tensor& tokens) {
  return logits_by_document(tokens, at::Tensor());
}

at::Tensor Llama::logits_by_document(const at::Tensor& tokens, const at::Tensor& positions) {
  const HiddenStates hidden = *hidden_states(tokens, positions);
  return at::linear(hidden.states, hidden.head);
}

std::optional<HiddenStates> Llama::hidden_states(const at::Tensor& tokens,
                                                 const at::Tensor& positions) {
  if (tokens.size(-1) > config_.max_position_embeddings) {
    throw std::invalid_argument("llama was given " + std::to_string(tokens.size(-1)) +
                                " tokens; its max_position_embeddings is " +
                                std::to_string(config_.max_position_embeddings));
  }
  const at::Tensor ids = tokens.to(embed_tokens_->weight.device());
  const at::Tensor places =
      positions.defined() ? positions.to(ids.device()) : at::arange(ids.size(-1), ids.options());
  const at::Tensor mask = positions.defined() ? document_mask(places) : at::Tensor();
  at::Tensor hidden = embed_tokens_(ids);
  const Rotation rotation = rotary_.at(places, hidden.scalar_type());
  for (auto& block : blocks_) hidden = block(hidden, rotation, mask);
  const at::Tensor& head = lm_head_.is_empty() ? embed_tokens_->weight : lm_head_->weight();
  return HiddenStates{.states = norm_(hidden), .head = head};
}

REGISTER_MODEL("llama", Llama);

}  // namespace phalanx
