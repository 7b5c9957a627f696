// SPDX-License-Identifier: Apache-2.0
#include "models/t5/layers.h"

#include <ATen/Dispatch.h>
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

// Standard deviation of initial weights (transformers' T5PreTrainedModel._init_weights).
double initial_std(const Config& config, int64_t width) {
  return config.initializer_factor / std::sqrt(static_cast<double>(width));
}

Linear make_linear(int64_t inputs, int64_t outputs, double std) {
  return Linear(inputs, outputs, LinearOptions{.has_bias = false, .initial_std = std});
}

Linear make_linear(const Config& config, int64_t inputs, int64_t outputs) {
  return make_linear(inputs, outputs, initial_std(config, inputs));
}

RmsNorm make_norm(const Config& config) {
  return RmsNorm(config.d_model, config.layer_norm_epsilon, config.initializer_factor);
}

// The lowest finite number. It hides a key; -inf would leave NaN where all keys are hidden.
double lowest(at::ScalarType dtype) {
  return AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, dtype, "lowest", [] {
    return static_cast<double>(std::numeric_limits<scalar_t>::lowest());
  });
}

}  // namespace

AttentionImpl::AttentionImpl(const Config& config)
    : config_(config),
      // Scores are not scaled by d_kv^-0.5: the initial queries are smaller (Mesh TensorFlow).
      q_(register_module("q", make_linear(config.d_model, config.heads_width(),
                                          initial_std(config, config.d_model * config.d_kv)))),
      k_(register_module("k", make_linear(config, config.d_model, config.heads_width()))),
      v_(register_module("v", make_linear(config, config.d_model, config.heads_width()))),
      o_(register_module("o", make_linear(config, config.heads_width(), config.d_model))),
      relative_attention_bias_(nullptr) {}

AttentionImpl::AttentionImpl(const Config& config, Side side) : AttentionImpl(config) {
  makes_causal_bias_ = side == Side::decoder;
  relative_attention_bias_ =
      register_module("relative_attention_bias",
                      make_embedding(config.relative_attention_num_buckets, config.num_heads,
                                     initial_std(config, config.d_model)));
}

KeyValueCache::Contents AttentionImpl::keys_and_values(const at::Tensor& source,
                                                       const std::optional<KeyValueCache>& cache) {
  if (!source.defined()) return cache->contents();
  const at::Tensor key = split_heads(k_(source), config_.num_heads);
  const at::Tensor value = split_heads(v_(source), config_.num_heads);
  return cache ? cache->append(key, value) : KeyValueCache::Contents{key, value};
}

at::Tensor AttentionImpl::position_bias(int64_t queries, int64_t keys) {
  const Buckets buckets{.count = config_.relative_attention_num_buckets,
                        .max_distance = config_.relative_attention_max_distance,
                        .is_causal = makes_causal_bias_};
  const at::Tensor& table = relative_attention_bias_->weight;
  const at::Tensor by_pair =
      relative_attention_bias_(relative_buckets(queries, keys, buckets, table.device()));
  // [1, heads, queries, keys]; contiguous for the fused kernels, as in transformers.
  return by_pair.permute({2, 0, 1}).unsqueeze(0).contiguous();
}

at::Tensor AttentionImpl::make_bias(const at::Tensor& query, int64_t keys, const at::Tensor& mask) {
  at::Tensor visible = mask;
  at::Tensor bias;
  if (!relative_attention_bias_.is_empty()) {
    const int64_t queries = query.size(2);
    bias = position_bias(queries, keys);
    if (makes_causal_bias_) {
      visible = at::ones({queries, keys}, bias.options().dtype(at::kBool)).tril(keys - queries);
    }
  } else if (visible.defined()) {
    bias = at::zeros({1}, query.options());
  }
  if (!visible.defined()) return bias;
  // The queries' dtype: autocast casts the bias to it, and float32's lowest would become -inf.
  return at::where(visible, bias, lowest(query.scalar_type()));
}

std::pair<at::Tensor, at::Tensor> AttentionImpl::forward(
    const at::Tensor& input, const at::Tensor& source, const at::Tensor& mask,
    const at::Tensor& bias, const std::optional<KeyValueCache>& cache) {
  const at::Tensor query = split_heads(q_(input), config_.num_heads);
  const auto [key, value] = keys_and_values(source, cache);
  const at::Tensor added = bias.defined() ? bias : make_bias(query, key.size(2), mask);
  const double dropout = is_training() ? config_.dropout_rate : 0.0;
  const at::Tensor mixed =
      attention(query, key, value,
                {.mask = added, .dropout = dropout, .scale = 1.0, .keys_grow = cache.has_value()});
  return {o_(mixed), added};
}

SelfAttentionLayerImpl::SelfAttentionLayerImpl(const Config& config, Side side, bool owns_bias)
    : dropout_(config.dropout_rate),
      attention_(register_module("SelfAttention",
                                 owns_bias ? Attention(config, side) : Attention(config))),
      layer_norm_(register_module("layer_norm", make_norm(config))) {}

std::pair<at::Tensor, at::Tensor> SelfAttentionLayerImpl::forward(
    const at::Tensor& states, const at::Tensor& mask, const at::Tensor& bias,
    const std::optional<KeyValueCache>& cache) {
  const at::Tensor normed = layer_norm_(states);
  const auto [mixed, added] = attention_(normed, normed, mask, bias, cache);
  return {states + at::dropout(mixed, dropout_, is_training()), added};
}

CrossAttentionLayerImpl::CrossAttentionLayerImpl(const Config& config)
    : dropout_(config.dropout_rate),
      attention_(register_module("EncDecAttention", Attention(config))),
      layer_norm_(register_module("layer_norm", make_norm(config))) {}

at::Tensor CrossAttentionLayerImpl::forward(const at::Tensor& states, const at::Tensor& encoded,
                                            const at::Tensor& mask,
                                            const std::optional<KeyValueCache>& cache) {
  const bool is_known = cache && cache->length() > 0;
  const at::Tensor source = is_known ? at::Tensor() : encoded;
  const auto mixed =
      attention_(layer_norm_(states), source, mask, /*bias=*/at::Tensor(), cache).first;
  return states + at::dropout(mixed, dropout_, is_training());
}

FeedForwardImpl::FeedForwardImpl(const Config& config)
    : dropout_(config.dropout_rate), wi_(nullptr), wi_1_(nullptr), wo_(nullptr) {
  const bool is_gated = config.feed_forward_proj == FeedForwardKind::gated_gelu;
  wi_ = register_module(is_gated ? "wi_0" : "wi", make_linear(config, config.d_model, config.d_ff));
  if (is_gated) wi_1_ = register_module("wi_1", make_linear(config, config.d_model, config.d_ff));
  wo_ = register_module("wo", make_linear(config, config.d_ff, config.d_model));
}

at::Tensor FeedForwardImpl::forward(const at::Tensor& input) {
  at::Tensor hidden = wi_(input);
  if (wi_1_.is_empty()) {
    hidden = at::relu(hidden);
  } else {
    const at::Tensor activated = at::gelu(hidden, "tanh");
    hidden = activated * wi_1_(input);
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
