// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>

#include "models/gpt2/config.h"
#include "trainer/api/unit.h"

namespace phalanx::gpt2 {

/// x W + b with the weight stored as [inputs, outputs]: the layout of GPT-2's published weights
/// (transformers' Conv1D).
class Conv1DImpl : public torch::nn::Module {
 public:
  /// The weight is drawn from a normal distribution of this standard deviation; the bias is zero.
  Conv1DImpl(int64_t inputs, int64_t outputs, double weight_std);

  /// [..., inputs] to [..., outputs]. `input` must be contiguous.
  at::Tensor forward(const at::Tensor& input);

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};
TORCH_MODULE(Conv1D);

/// Layer normalisation over the last dimension, with a weight of ones and a bias of zeros.
class LayerNormImpl : public torch::nn::Module {
 public:
  LayerNormImpl(int64_t width, double epsilon);

  at::Tensor forward(const at::Tensor& input);

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  double epsilon_;
};
TORCH_MODULE(LayerNorm);

/// Causal multi-head self-attention; [batch, length, n_embd] in and out. `mask`, if there is one,
/// is bool [batch, 1, length, length]: true where the second place may be seen from the first
/// (document_mask).
class AttentionImpl : public torch::nn::Module {
 public:
  explicit AttentionImpl(const Config& config);

  at::Tensor forward(const at::Tensor& input, const std::optional<at::Tensor>& mask);

 private:
  int64_t heads_;
  double attention_dropout_;
  double output_dropout_;
  Conv1D c_attn_;
  Conv1D c_proj_;
};
TORCH_MODULE(Attention);

/// The two layers with a GELU between them; [batch, length, n_embd] in and out.
class MlpImpl : public torch::nn::Module {
 public:
  explicit MlpImpl(const Config& config);

  at::Tensor forward(const at::Tensor& input);

 private:
  double dropout_;
  Conv1D c_fc_;
  Conv1D c_proj_;
};
TORCH_MODULE(Mlp);

/// What GPT-2 repeats: attention and MLP, each normalised first and added to its input. `mask` is
/// that of Attention.
class BlockImpl : public torch::nn::Module, public Unit {
 public:
  explicit BlockImpl(const Config& config);

  at::Tensor forward(const at::Tensor& input, const std::optional<at::Tensor>& mask);

 private:
  LayerNorm ln_1_;
  Attention attn_;
  LayerNorm ln_2_;
  Mlp mlp_;
};
UNIT(Block);

}  // namespace phalanx::gpt2
