// SPDX-License-Identifier: Apache-2.0
#include "models/gpt2/layers.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>

#include <cmath>

namespace phalanx::gpt2 {
namespace {

// GPT-2 scales the layers that write to the residual stream by the number of its additions.
double projection_std(const Config& config) {
  return config.initializer_range / std::sqrt(2.0 * static_cast<double>(config.n_layer));
}

}  // namespace

Conv1DImpl::Conv1DImpl(int64_t inputs, int64_t outputs, double weight_std)
    : weight_(register_parameter("weight", at::empty({inputs, outputs}).normal_(0, weight_std))),
      bias_(register_parameter("bias", at::zeros({outputs}))) {}

at::Tensor Conv1DImpl::forward(const at::Tensor& input) {
  c10::DimVector sizes(input.sizes());
  const at::Tensor rows = at::addmm(bias_, input.view({-1, sizes.back()}), weight_);
  sizes.back() = rows.size(1);
  return rows.view(sizes);
}

LayerNormImpl::LayerNormImpl(int64_t width, double epsilon)
    : weight_(register_parameter("weight", at::ones({width}))),
      bias_(register_parameter("bias", at::zeros({width}))),
      epsilon_(epsilon) {}

at::Tensor LayerNormImpl::forward(const at::Tensor& input) {
  return at::layer_norm(input, {input.size(-1)}, weight_, bias_, epsilon_);
}

AttentionImpl::AttentionImpl(const Config& config)
    : heads_(config.n_head),
      attention_dropout_(config.attn_pdrop),
      output_dropout_(config.resid_pdrop),
      c_attn_(register_module("c_attn",
                              Conv1D(config.n_embd, 3 * config.n_embd, config.initializer_range))),
      c_proj_(register_module("c_proj",
                              Conv1D(config.n_embd, config.n_embd, projection_std(config)))) {}

at::Tensor AttentionImpl::forward(const at::Tensor& input, const std::optional<at::Tensor>& mask) {
  const int64_t batch = input.size(0);
  const int64_t length = input.size(1);
  const int64_t width = input.size(2);
  const auto by_head = [&](const at::Tensor& part) {
    return part.view({batch, length, heads_, width / heads_}).transpose(1, 2);
  };
  const auto parts = c_attn_(input).split(width, 2);
  const at::Tensor query = by_head(parts[0]);
  const at::Tensor key = by_head(parts[1]);
  const at::Tensor value = by_head(parts[2]);
  const double dropout = is_training() ? attention_dropout_ : 0.0;
  const at::Tensor mixed = at::scaled_dot_product_attention(query, key, value, mask, dropout,
                                                            /*is_causal=*/!mask.has_value());
  const at::Tensor joined = mixed.transpose(1, 2).contiguous().view({batch, length, width});
  return at::dropout(c_proj_(joined), output_dropout_, is_training());
}

MlpImpl::MlpImpl(const Config& config)
    : dropout_(config.resid_pdrop),
      c_fc_(register_module("c_fc",
                            Conv1D(config.n_embd, config.inner_width(), config.initializer_range))),
      c_proj_(register_module(
          "c_proj", Conv1D(config.inner_width(), config.n_embd, projection_std(config)))) {}

at::Tensor MlpImpl::forward(const at::Tensor& input) {
  const at::Tensor hidden = at::gelu(c_fc_(input), "tanh");
  return at::dropout(c_proj_(hidden), dropout_, is_training());
}

BlockImpl::BlockImpl(const Config& config)
    : ln_1_(register_module("ln_1", LayerNorm(config.n_embd, config.layer_norm_epsilon))),
      attn_(register_module("attn", Attention(config))),
      ln_2_(register_module("ln_2", LayerNorm(config.n_embd, config.layer_norm_epsilon))),
      mlp_(register_module("mlp", Mlp(config))) {}

at::Tensor BlockImpl::forward(const at::Tensor& input, const std::optional<at::Tensor>& mask) {
  const at::Tensor attended = input + attn_(ln_1_(input), mask);
  return attended + mlp_(ln_2_(attended));
}

}  // namespace phalanx::gpt2
