// SPDX-License-Identifier: Apache-2.0
#include "models/t5/layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

#include "models/layers/attention.h"
#include "models/layers/embedding.h"
#include "models/t5/relative_positions.h"

namespace phalanx::t5 {
namespace {

// Its weight has the standard deviation initializer_factor / sqrt(variance_over).
Linear make_linear(const Config& config, int64_t inputs, int64_t outputs, int64_t variance_over) {
  const double std = config.initializer_factor / std::sqrt(static_cast<double>(variance_over));
  return Linear(inputs, outputs, LinearOptions{.has_bias = false, .initial_std = std});
}

Linear make_linear(const Config& config, int64_t inputs, int64_t outputs) {
  return make_linear(config, inputs, outputs, inputs);
}

RmsNorm make_norm(const Config& config) {
  return RmsNorm(config.d_model, config.layer_norm_epsilon, config.initializer_factor);
}

// What hides a place instead of minus infinity, so that a row that sees none has weights, too.
double lowest(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return std::numeric_limits<double>::lowest();
    case at::kBFloat16:
      return std::numeric_limits<at::BFloat16>::lowest();
    case at::kHalf:
      return std::numeric_limits<at::Half>::lowest();
    default:
      return std::numeric_limits<float>::lowest();
  }
}

}  // namespace

AttentionImpl::AttentionImpl(const Config& config)
    : config_(config),
      // Nothing scales the scores, so the initial queries are smaller.
      q_(register_module("q", make_linear(config, config.d_model, config.heads_width(),
                                          config.d_model * config.d_kv))),
      k_(register_module("k", make_linear(config, config.d_model, config.heads_width()))),
      v_(register_module("v", make_linear(config, config.d_model, config.heads_width()))),
      o_(register_module("o", make_linear(config, config.heads_width(), config.d_model))),
      relative_attention_bias_(nullptr) {}

AttentionImpl::AttentionImpl(const Config& config, Half half) : AttentionImpl(config) {
  half_ = half;
  const double std = config.initializer_factor / std::sqrt(static_cast<double>(config.d_model));
  relative_attention_bias_ =
      register_module("relative_attention_bias",
                      make_embedding(config.relative_attention_num_buckets, config.num_heads, std));
}

at::Tensor AttentionImpl::position_bias(int64_t length) {
  const Buckets buckets{.count = config_.relative_attention_num_buckets,
                        .max_distance = config_.relative_attention_max_distance,
                        .is_causal = half_ == Half::decoder};
  const at::Tensor& table = relative_attention_bias_->weight;
  const at::Tensor by_pair =
      relative_attention_bias_(relative_buckets(length, buckets, table.device()));
  return by_pair.permute({2, 0, 1}).unsqueeze(0).contiguous();
}

at::Tensor AttentionImpl::make_bias(const at::Tensor& query, const at::Tensor& mask) {
  at::Tensor visible = mask;
  at::Tensor bias;
  if (!relative_attention_bias_.is_empty()) {
    const int64_t length = query.size(2);
    bias = position_bias(length);
    if (half_ == Half::decoder) {
      visible = at::ones({length, length}, bias.options().dtype(at::kBool)).tril();
    }
  } else if (visible.defined()) {
    bias = at::zeros({1}, query.options());
  }
  if (!visible.defined()) return bias;
  return at::where(visible, bias, lowest(query.scalar_type()));
}

at::Tensor AttentionImpl::forward(const at::Tensor& input, const at::Tensor& source,
                                  const at::Tensor& mask, at::Tensor& bias) {
  const at::Tensor query = split_heads(q_(input), config_.num_heads);
  const at::Tensor key = split_heads(k_(source), config_.num_heads);
  const at::Tensor value = split_heads(v_(source), config_.num_heads);
  if (!bias.defined()) bias = make_bias(query, mask);
  const double dropout = is_training() ? config_.dropout_rate : 0.0;
  return o_(attention(query, key, value, {.mask = bias, .dropout = dropout, .scale = 1.0}));
}

SelfAttentionLayerImpl::SelfAttentionLayerImpl(const Config& config, Half half, bool owns_bias)
    : dropout_(config.dropout_rate),
      attention_(register_module("SelfAttention",
                                 owns_bias ? Attention(config, half) : Attention(config))),
      layer_norm_(register_module("layer_norm", make_norm(config))) {}

at::Tensor SelfAttentionLayerImpl::forward(const at::Tensor& states, const at::Tensor& mask,
                                           at::Tensor& bias) {
  const at::Tensor normed = layer_norm_(states);
  const at::Tensor mixed = attention_(normed, normed, mask, bias);
  return states + at::dropout(mixed, dropout_, is_training());
}

CrossAttentionLayerImpl::CrossAttentionLayerImpl(const Config& config)
    : dropout_(config.dropout_rate),
      attention_(register_module("EncDecAttention", Attention(config))),
      layer_norm_(register_module("layer_norm", make_norm(config))) {}

at::Tensor CrossAttentionLayerImpl::forward(const at::Tensor& states, const at::Tensor& encoded,
                                            const at::Tensor& mask) {
  at::Tensor bias;
  const at::Tensor mixed = attention_(layer_norm_(states), encoded, mask, bias);
  return states + at::dropout(mixed, dropout_, is_training());
}

FeedForwardImpl::FeedForwardImpl(const Config& config)
    : dropout_(config.dropout_rate), wi_(nullptr), gate_(nullptr), wo_(nullptr) {
  const bool is_gated = config.feed_forward_proj == FeedForwardKind::gated_gelu;
  wi_ = register_module(is_gated ? "wi_0" : "wi", make_linear(config, config.d_model, config.d_ff));
  if (is_gated) gate_ = register_module("wi_1", make_linear(config, config.d_model, config.d_ff));
  wo_ = register_module("wo", make_linear(config, config.d_ff, config.d_model));
}

at::Tensor FeedForwardImpl::forward(const at::Tensor& input) {
  at::Tensor hidden = wi_(input);
  if (gate_.is_empty()) {
    hidden = at::relu(hidden);
  } else {
    const at::Tensor activated = at::gelu(hidden, "tanh");
    hidden = activated * gate_(input);
  }
  return wo_(at::dropout(hidden, dropout_, is_training()));
}

FeedForwardLayerImpl::FeedForwardLayerImpl(const Config& config)
    : dropout_(config.dropout_rate),
      feed_forward_(register_module("DenseReluDense", FeedForward(config))),
      layer_norm_(register_module("layer_norm", make_norm(config))) {}

at::Tensor FeedForwardLayerImpl::forward(const at::Tensor& states) {
  const at::Tensor forwarded = feed_forward_(layer_norm_(states));
  return states + at::dropout(forwarded, dropout_, is_training());
}

}  // namespace phalanx::t5
