// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "models/layers/rotary_scaling.h"
#include "trainer/config/tree/forward.h"

namespace phalanx::llama {

/// The sizes of a Llama, under the names and with the defaults of Hugging Face's LlamaConfig as of
/// transformers 4. attention_qkv_bias is not there: true makes the model a Qwen2.
struct Config {
  int64_t vocab_size = 32000;
  int64_t hidden_size = 4096;
  int64_t intermediate_size = 11008;
  int64_t num_hidden_layers = 32;
  int64_t num_attention_heads = 32;
  std::optional<int64_t> num_key_value_heads;
  std::optional<int64_t> head_dim;
  int64_t max_position_embeddings = 2048;
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000;
  std::optional<RotaryScaling> rope_scaling;
  bool tie_word_embeddings = false;
  bool attention_bias = false;
  bool attention_qkv_bias = false;
  bool mlp_bias = false;
  double attention_dropout = 0;
  double initializer_range = 0.02;

  /// Number of key/value heads; each serves num_attention_heads / kv_heads() query heads.
  int64_t kv_heads() const { return num_key_value_heads.value_or(num_attention_heads); }
  /// Width of a head, in numbers.
  int64_t head_width() const { return head_dim.value_or(hidden_size / num_attention_heads); }

  static void describe(config::Schema<Config>& s);
};

}  // namespace phalanx::llama
