// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "models/interfaces/decoder_cache.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/t5/config.h"

namespace phalanx::t5 {

/// The two stacks of a T5. The decoder is causal, and attends to the encoder's output.
enum class Side { encoder, decoder };

/// Multi-head attention without biases and without a scale of the scores.
class AttentionImpl : public torch::nn::Module {
 public:
  explicit AttentionImpl(const Config& config);
  /// Self-attention that owns the table of relative positions, for all blocks of its side.
  AttentionImpl(const Config& config, Side side);

  /// Attends from `input` [batch, queries, d_model] to `source` [batch, keys, d_model]. Returns the
  /// output, shaped as `input`, and the bias that was added to the scores: it broadcasts to [batch,
  /// heads, queries, keys]; undefined if nothing was added. A defined `bias` is added as it is, and
  /// `mask` is not read: the bias already hides keys. An undefined one is made here: from the
  /// relative positions if this layer owns the table. In the decoder that layer hides later keys,
  /// and does not read `mask`; elsewhere keys are hidden where `mask`, bool [batch, 1, 1, keys], is
  /// false. Hidden keys get the lowest finite number of the dtype of the queries. With a `cache`
  /// the places of `source` join those in it; an undefined `source` adds none.
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& input, const at::Tensor& source,
                                            const at::Tensor& mask, const at::Tensor& bias,
                                            const std::optional<KeyValueCache>& cache);

 private:
  // Keys and values of all places that the queries may see.
  KeyValueCache::Contents keys_and_values(const at::Tensor& source,
                                          const std::optional<KeyValueCache>& cache);
  // The queries are the last of the keys' places.
  at::Tensor position_bias(int64_t queries, int64_t keys);
  at::Tensor make_bias(const at::Tensor& query, int64_t keys, const at::Tensor& mask);

  Config config_;
  bool makes_causal_bias_ = false;  // The decoder's first block: it gives later ones its bias.
  Linear q_;                        // [heads * d_kv, d_model].
  Linear k_;                        // [heads * d_kv, d_model].
  Linear v_;                        // [heads * d_kv, d_model].
  Linear o_;                        // [d_model, heads * d_kv].
  torch::nn::Embedding relative_attention_bias_;  // [buckets, heads], in the first block only.
};
TORCH_MODULE(Attention);

/// Attention within a sequence, normalised first and added to its input.
class SelfAttentionLayerImpl : public torch::nn::Module {
 public:
  SelfAttentionLayerImpl(const Config& config, Side side, bool owns_bias);

  /// As Attention, with `states` [batch, length, d_model] as input and source.
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& states, const at::Tensor& mask,
                                            const at::Tensor& bias,
                                            const std::optional<KeyValueCache>& cache);

 private:
  double dropout_;
  Attention attention_;  // SelfAttention.
  RmsNorm layer_norm_;
};
TORCH_MODULE(SelfAttentionLayer);

/// Attention to what was encoded, normalised first and added to its input.
class CrossAttentionLayerImpl : public torch::nn::Module {
 public:
  explicit CrossAttentionLayerImpl(const Config& config);

  /// `states` are [batch, length, d_model], `encoded` [batch, input length, d_model], whose keys
  /// and values a `cache` takes in the first call.
  at::Tensor forward(const at::Tensor& states, const at::Tensor& encoded, const at::Tensor& mask,
                     const std::optional<KeyValueCache>& cache);

 private:
  double dropout_;
  Attention attention_;  // EncDecAttention.
  RmsNorm layer_norm_;
};
TORCH_MODULE(CrossAttentionLayer);

/// wo(dropout(relu(wi(x)))), or wo(dropout(gelu_tanh(wi_0(x)) * wi_1(x))) if gated; [batch, length,
/// d_model] in and out.
class FeedForwardImpl : public torch::nn::Module {
 public:
  explicit FeedForwardImpl(const Config& config);

  at::Tensor forward(const at::Tensor& input);

 private:
  double dropout_;
  Linear wi_;    // [d_ff, d_model]; named wi_0 if gated.
  Linear wi_1_;  // [d_ff, d_model]; only if gated.
  Linear wo_;    // [d_model, d_ff].
};
TORCH_MODULE(FeedForward);

/// FeedForward, normalised first and added to its input.
class FeedForwardLayerImpl : public torch::nn::Module {
 public:
  explicit FeedForwardLayerImpl(const Config& config);

  at::Tensor forward(const at::Tensor& states);

 private:
  double dropout_;
  FeedForward feed_forward_;  // DenseReluDense.
  RmsNorm layer_norm_;
};
TORCH_MODULE(FeedForwardLayer);

}  // namespace phalanx::t5
