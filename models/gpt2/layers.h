// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>

#include "models/gpt2/config.h"
#include "models/interfaces/decoder_cache.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "trainer/api/unit.h"

namespace phalanx::gpt2 {

/// Causal multi-head self-attention; [batch, length, n_embd] in and out. `mask`, if defined, is
/// bool [batch, 1, length, keys], true where query i may attend to key j (document_mask). With a
/// `cache` the keys are those of the places before, too.
class AttentionImpl : public torch::nn::Module {
 public:
  explicit AttentionImpl(const Config& config);

  at::Tensor forward(const at::Tensor& input, const at::Tensor& mask,
                     const std::optional<KeyValueCache>& cache);

 private:
  int64_t heads_;
  double attention_dropout_;
  double output_dropout_;
  Linear c_attn_;  // [n_embd, 3 * n_embd]: queries, keys, values.
  Linear c_proj_;  // [n_embd, n_embd].
};
TORCH_MODULE(Attention);

/// Feed-forward layer, dropout(c_proj(gelu_tanh(c_fc(x)))); [batch, length, n_embd] in and out.
class MlpImpl : public torch::nn::Module {
 public:
  explicit MlpImpl(const Config& config);

  at::Tensor forward(const at::Tensor& input);

 private:
  double dropout_;
  Linear c_fc_;    // [n_embd, inner].
  Linear c_proj_;  // [inner, n_embd].
};
TORCH_MODULE(Mlp);

/// What GPT-2 repeats: attention and MLP, each normalised first and added to its input. Arguments
/// as those of Attention.
class BlockImpl : public torch::nn::Module, public Unit {
 public:
  explicit BlockImpl(const Config& config);

  at::Tensor forward(const at::Tensor& input, const at::Tensor& mask,
                     const std::optional<KeyValueCache>& cache);

 private:
  LayerNorm ln_1_;
  Attention attn_;
  LayerNorm ln_2_;
  Mlp mlp_;
};
UNIT(Block);

}  // namespace phalanx::gpt2
