// SPDX-License-Identifier: Apache-2.0
#include "models/gpt2/layers.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>

#include <cmath>

#include "models/layers/attention.h"

namespace phalanx::gpt2 {
namespace {

LinearOptions input_options(const Config& config) {
  return {.initial_std = config.initializer_range, .inputs_first = true};
}

// Layers that write to the residual stream start smaller, by one over the root of the number of
// residual additions (Radford et al. 2019, section 2.3).
LinearOptions residual_options(const Config& config) {
  const double additions = 2.0 * static_cast<double>(config.n_layer);
  return {.initial_std = config.initializer_range / std::sqrt(additions), .inputs_first = true};
}

}  // namespace

AttentionImpl::AttentionImpl(const Config& config)
    : heads_(config.n_head),
      attention_dropout_(config.attn_pdrop),
      output_dropout_(config.resid_pdrop),
      c_attn_(register_module("c_attn",
                              Linear(config.n_embd, 3 * config.n_embd, input_options(config)))),
      c_proj_(register_module("c_proj",
                              Linear(config.n_embd, config.n_embd, residual_options(config)))) {}

at::Tensor AttentionImpl::forward(const at::Tensor& input, const at::Tensor& mask,
                                  const std::optional<KeyValueCache>& cache) {
  const auto parts = c_attn_(input).split(input.size(-1), -1);
  const at::Tensor query = split_heads(parts[0], heads_);
  const at::Tensor key = split_heads(parts[1], heads_);
  const at::Tensor value = split_heads(parts[2], heads_);
  const at::Tensor mixed = attention(query, key, value,
                                     {.is_causal = !mask.defined(),
                                      .mask = mask,
                                      .dropout = is_training() ? attention_dropout_ : 0.0,
                                      .scale = std::nullopt,
                                      .cache = cache});
  return at::dropout(c_proj_(mixed), output_dropout_, is_training());
}

MlpImpl::MlpImpl(const Config& config)
    : dropout_(config.resid_pdrop),
      c_fc_(register_module("c_fc",
                            Linear(config.n_embd, config.inner_width(), input_options(config)))),
      c_proj_(register_module(
          "c_proj", Linear(config.inner_width(), config.n_embd, residual_options(config)))) {}

at::Tensor MlpImpl::forward(const at::Tensor& input) {
  const at::Tensor hidden = at::gelu(c_fc_(input), "tanh");
  return at::dropout(c_proj_(hidden), dropout_, is_training());
}

BlockImpl::BlockImpl(const Config& config)
    : ln_1_(register_module("ln_1", LayerNorm(config.n_embd, config.layer_norm_epsilon))),
      attn_(register_module("attn", Attention(config))),
      ln_2_(register_module("ln_2", LayerNorm(config.n_embd, config.layer_norm_epsilon))),
      mlp_(register_module("mlp", Mlp(config))) {}

at::Tensor BlockImpl::forward(const at::Tensor& input, const at::Tensor& mask,
                              const std::optional<KeyValueCache>& cache) {
  const at::Tensor attended = input + attn_(ln_1_(input), mask, cache);
  return attended + mlp_(ln_2_(attended));
}

}  // namespace phalanx::gpt2
