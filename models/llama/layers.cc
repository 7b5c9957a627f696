// SPDX-License-Identifier: Apache-2.0
#include "models/llama/layers.h"

#include <ATen/ops/silu.h>

#include "models/layers/attention.h"

namespace phalanx::llama {
namespace {

Linear make_linear(const Config& config, int64_t inputs, int64_t outputs, bool has_bias) {
  return Linear(inputs, outputs,
                LinearOptions{.has_bias = has_bias, .initial_std = config.initializer_range});
}

// A projection to `heads` heads of queries, keys or values.
Linear make_qkv(const Config& config, int64_t heads) {
  return make_linear(config, config.hidden_size, heads * config.head_width(),
                     config.attention_bias || config.attention_qkv_bias);
}

}  // namespace

AttentionImpl::AttentionImpl(const Config& config)
    : heads_(config.num_attention_heads),
      kv_heads_(config.kv_heads()),
      dropout_(config.attention_dropout),
      q_proj_(register_module("q_proj", make_qkv(config, heads_))),
      k_proj_(register_module("k_proj", make_qkv(config, kv_heads_))),
      v_proj_(register_module("v_proj", make_qkv(config, kv_heads_))),
      o_proj_(register_module("o_proj", make_linear(config, heads_ * config.head_width(),
                                                    config.hidden_size, config.attention_bias))) {}

at::Tensor AttentionImpl::forward(const at::Tensor& input, const Rotation& rotation,
                                  const at::Tensor& mask,
                                  const std::optional<KeyValueCache>& cache) {
  const at::Tensor query = rotate(split_heads(q_proj_(input), heads_), rotation);
  const at::Tensor key = rotate(split_heads(k_proj_(input), kv_heads_), rotation);
  const at::Tensor value = split_heads(v_proj_(input), kv_heads_);
  return o_proj_(attention(query, key, value,
                           {.is_causal = !mask.defined(),
                            .mask = mask,
                            .dropout = is_training() ? dropout_ : 0.0,
                            .scale = std::nullopt,
                            .cache = cache}));
}

MlpImpl::MlpImpl(const Config& config)
    : gate_proj_(nullptr), up_proj_(nullptr), down_proj_(nullptr) {
  const auto linear = [&](int64_t inputs, int64_t outputs) {
    return make_linear(config, inputs, outputs, config.mlp_bias);
  };
  gate_proj_ = register_module("gate_proj", linear(config.hidden_size, config.intermediate_size));
  up_proj_ = register_module("up_proj", linear(config.hidden_size, config.intermediate_size));
  down_proj_ = register_module("down_proj", linear(config.intermediate_size, config.hidden_size));
}

at::Tensor MlpImpl::forward(const at::Tensor& input) {
  const at::Tensor gate = at::silu(gate_proj_(input));
  return down_proj_(gate * up_proj_(input));
}

BlockImpl::BlockImpl(const Config& config)
    : input_layernorm_(
          register_module("input_layernorm", RmsNorm(config.hidden_size, config.rms_norm_eps))),
      self_attn_(register_module("self_attn", Attention(config))),
      post_attention_layernorm_(register_module("post_attention_layernorm",
                                                RmsNorm(config.hidden_size, config.rms_norm_eps))),
      mlp_(register_module("mlp", Mlp(config))) {}

at::Tensor BlockImpl::forward(const at::Tensor& input, const Rotation& rotation,
                              const at::Tensor& mask, const std::optional<KeyValueCache>& cache) {
  const at::Tensor attended = input + self_attn_(input_layernorm_(input), rotation, mask, cache);
  return attended + mlp_(post_attention_layernorm_(attended));
}

}  // namespace phalanx::llama
