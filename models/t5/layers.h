// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/t5/config.h"

namespace phalanx::t5 {

/// The two halves of a T5: the decoder sees no later place, and attends to what was encoded.
enum class Half { encoder, decoder };

/// Multi-head attention without biases and without a scale of the scores.
class AttentionImpl : public torch::nn::Module {
 public:
  explicit AttentionImpl(const Config& config);
  /// One within a sequence that owns the table of relative positions, for all blocks of its half.
  AttentionImpl(const Config& config, Half half);

  /// From `input` [batch, queries, d_model] to `source` [batch, keys, d_model]; the same shape as
  /// `input`. `bias`, broadcast to [batch, heads, queries, keys], is added to the scores: it has
  /// relative positions, and its dtype's lowest number where a place must not be seen. Where it is
  /// undefined it is made, from the table if there is one, and `mask` (T5Block).
  at::Tensor forward(const at::Tensor& input, const at::Tensor& source, const at::Tensor& mask,
                     at::Tensor& bias);

 private:
  at::Tensor position_bias(int64_t length);
  at::Tensor make_bias(const at::Tensor& query, const at::Tensor& mask);

  Config config_;
  Half half_ = Half::encoder;
  Linear q_;                                      // [heads * d_kv, d_model].
  Linear k_;                                      // [heads * d_kv, d_model].
  Linear v_;                                      // [heads * d_kv, d_model].
  Linear o_;                                      // [d_model, heads * d_kv].
  torch::nn::Embedding relative_attention_bias_;  // [buckets, heads], in the first block only.
};
TORCH_MODULE(Attention);

/// Attention within a sequence, normalised first and added to its input.
class SelfAttentionLayerImpl : public torch::nn::Module {
 public:
  SelfAttentionLayerImpl(const Config& config, Half half, bool owns_bias);

  /// `states` are [batch, length, d_model], the rest as in Attention; `bias` is set where it is
  /// undefined.
  at::Tensor forward(const at::Tensor& states, const at::Tensor& mask, at::Tensor& bias);

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

  /// `states` are [batch, length, d_model], `encoded` [batch, input length, d_model].
  at::Tensor forward(const at::Tensor& states, const at::Tensor& encoded, const at::Tensor& mask);

 private:
  double dropout_;
  Attention attention_;  // EncDecAttention.
  RmsNorm layer_norm_;
};
TORCH_MODULE(CrossAttentionLayer);

/// wo(relu(wi(x))), or wo(gelu(wi_0(x)) * wi_1(x)); [batch, length, d_model] in and out.
class FeedForwardImpl : public torch::nn::Module {
 public:
  explicit FeedForwardImpl(const Config& config);

  at::Tensor forward(const at::Tensor& input);

 private:
  double dropout_;
  Linear wi_;    // [d_ff, d_model]; wi_0 where it is gated.
  Linear gate_;  // [d_ff, d_model]: wi_1, or none.
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
