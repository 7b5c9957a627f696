// SPDX-License-Identifier: Apache-2.0
#include "models/t5/block.h"

#include <ATen/ops/dropout.h>
#include <torch/nn/modules/container/modulelist.h>

#include <tuple>

namespace phalanx::t5 {
namespace {

// Clamps float16: infinity would become NaN in the next norm. transformers clamps to this only if
// an element is infinite.
at::Tensor kept_finite(const at::Tensor& states) {
  if (states.scalar_type() != at::kHalf) return states;
  constexpr double kMost = 64504;  // float16's largest number, less 1000.
  return states.clamp(-kMost, kMost);
}

std::optional<BlockCache> block_of(DecoderCache* cache, size_t block) {
  if (cache == nullptr) return std::nullopt;
  return BlockCache{.self_attention = cache->layer(2 * block),
                    .cross_attention = cache->layer(2 * block + 1)};
}

}  // namespace

T5BlockImpl::T5BlockImpl(const Config& config, Side side, bool owns_bias)
    : self_attention_(config, side, owns_bias), cross_attention_(nullptr), feed_forward_(config) {
  auto list = register_module("layer", torch::nn::ModuleList());
  list->push_back(self_attention_);
  if (side == Side::decoder) {
    cross_attention_ = CrossAttentionLayer(config);
    list->push_back(cross_attention_);
  }
  list->push_back(feed_forward_);
}

std::pair<at::Tensor, at::Tensor> T5BlockImpl::forward(const at::Tensor& states,
                                                       const at::Tensor& bias,
                                                       const at::Tensor& mask,
                                                       const at::Tensor& encoded,
                                                       const std::optional<BlockCache>& cache) {
  std::optional<KeyValueCache> of_self;
  std::optional<KeyValueCache> of_cross;
  if (cache) {
    of_self = cache->self_attention;
    of_cross = cache->cross_attention;
  }
  // `mask` is of the inputs: in the decoder only cross-attention reads them.
  const bool is_decoder = !cross_attention_.is_empty();
  const auto [attended, added] =
      self_attention_(states, is_decoder ? at::Tensor() : mask, bias, of_self);
  at::Tensor hidden = kept_finite(attended);
  if (is_decoder) hidden = kept_finite(cross_attention_(hidden, encoded, mask, of_cross));
  return {kept_finite(feed_forward_(hidden)), added};
}

StackImpl::StackImpl(const Config& config, Side side)
    : dropout_(config.dropout_rate), final_layer_norm_(nullptr) {
  auto list = register_module("block", torch::nn::ModuleList());
  const int64_t layers = side == Side::encoder ? config.num_layers : config.decoder_layers();
  for (int64_t i = 0; i < layers; ++i) {
    blocks_.emplace_back(config, side, /*owns_bias=*/i == 0);
    list->push_back(blocks_.back());
  }
  final_layer_norm_ = register_module(
      "final_layer_norm",
      RmsNorm(config.d_model, config.layer_norm_epsilon, config.initializer_factor));
}

at::Tensor StackImpl::forward(const at::Tensor& embedded, const at::Tensor& mask,
                              const at::Tensor& encoded, DecoderCache* cache) {
  at::Tensor hidden = at::dropout(embedded, dropout_, is_training());
  at::Tensor bias;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    std::tie(hidden, bias) = blocks_[i](hidden, bias, mask, encoded, block_of(cache, i));
  }
  return at::dropout(final_layer_norm_(hidden), dropout_, is_training());
}

}  // namespace phalanx::t5
