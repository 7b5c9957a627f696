// SPDX-License-Identifier: Apache-2.0
#include "models/llama/llama.h"

#include <ATen/ops/arange.h>
#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>

#include <stdexcept>

#include "models/layers/decoder_cache.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/kinds.h"

namespace phalanx {

Llama::Llama(const Config& config)
    : config_(config),
      rotary_(config.head_width(), config.rope_theta, config.rope_scaling),
      embed_tokens_(register_module(
          "embed_tokens",
          Embedding(config.vocab_size, config.hidden_size, config.initializer_range,
                    config.tie_word_embeddings ? TableUse::whole : TableUse::rows))),
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
  return logits_of(states(tokens, /*positions=*/at::Tensor(), /*cache=*/nullptr));
}

std::optional<HiddenStates> Llama::hidden_states(const at::Tensor& tokens,
                                                 const at::Tensor& positions) {
  return states(tokens, positions, /*cache=*/nullptr);
}

std::optional<HiddenStates> Llama::next_states(const at::Tensor& tokens,
                                               const at::Tensor& positions, DecoderCache& cache) {
  return states(tokens, positions, &cache);
}

HiddenStates Llama::states(const at::Tensor& tokens, const at::Tensor& positions,
                           DecoderCache* cache) {
  const int64_t before = cache == nullptr ? 0 : cache->length();
  const int64_t end = before + tokens.size(-1);
  if (end > config_.max_position_embeddings) {
    throw std::invalid_argument(
        fmt::format("llama was given {} tokens; its max_position_embeddings is {}", end,
                    config_.max_position_embeddings));
  }
  const at::Tensor ids = tokens.to(embed_tokens_->weight.device());
  const at::Tensor places =
      positions.defined() ? positions.to(ids.device()) : at::arange(before, end, ids.options());
  const at::Tensor mask = positions.defined() ? mask_of(places, cache) : at::Tensor();
  at::Tensor hidden = embed_tokens_(ids);
  const Rotation rotation = rotary_.rotation(places, hidden.scalar_type());
  for (size_t i = 0; i < blocks_.size(); ++i) {
    hidden = blocks_[i](hidden, rotation, mask, layer_of(cache, i));
  }
  const at::Tensor& head = lm_head_.is_empty() ? embed_tokens_->weight : lm_head_->weight();
  return {.states = norm_(hidden), .head = head};
}

REGISTER_MODEL("llama", Llama);

}  // namespace phalanx
