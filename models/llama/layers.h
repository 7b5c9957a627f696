// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>

#include "models/interfaces/decoder_cache.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/layers/rotary.h"
#include "models/llama/config.h"
#include "trainer/api/unit.h"

namespace phalanx::llama {

/// Causal self-attention with grouped queries and rotary positions; [batch, length, hidden_size] in
/// and out. `mask`, if defined, is bool [batch, 1, length, keys], true where query i may attend to
/// key j (document_mask). With a `cache` the keys are those of the places before, too.
class AttentionImpl : public torch::nn::Module {
 public:
  explicit AttentionImpl(const Config& config);

  at::Tensor forward(const at::Tensor& input, const Rotation& rotation, const at::Tensor& mask,
                     const std::optional<KeyValueCache>& cache);

 private:
  int64_t heads_;
  int64_t kv_heads_;
  double dropout_;
  Linear q_proj_;  // [heads * head width, hidden_size].
  Linear k_proj_;  // [kv_heads * head width, hidden_size].
  Linear v_proj_;  // [kv_heads * head width, hidden_size].
  Linear o_proj_;  // [hidden_size, heads * head width].
};
TORCH_MODULE(Attention);

/// SwiGLU (Shazeer 2020): down(silu(gate(x)) * up(x)); [batch, length, hidden_size] in and out.
class MlpImpl : public torch::nn::Module {
 public:
  explicit MlpImpl(const Config& config);

  at::Tensor forward(const at::Tensor& input);

 private:
  Linear gate_proj_;  // [intermediate_size, hidden_size].
  Linear up_proj_;    // [intermediate_size, hidden_size].
  Linear down_proj_;  // [hidden_size, intermediate_size].
};
TORCH_MODULE(Mlp);

/// What Llama repeats: attention and MLP, each normalised first and added to its input. Arguments
/// as those of Attention.
class BlockImpl : public torch::nn::Module, public Unit {
 public:
  explicit BlockImpl(const Config& config);

  at::Tensor forward(const at::Tensor& input, const Rotation& rotation, const at::Tensor& mask,
                     const std::optional<KeyValueCache>& cache);

 private:
  RmsNorm input_layernorm_;
  Attention self_attn_;
  RmsNorm post_attention_layernorm_;
  Mlp mlp_;
};
UNIT(Block);

}  // namespace phalanx::llama
