// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/config/tree/forward.h"

namespace phalanx::t5 {

/// Activation between the two matrices of the feed-forward layer: ReLU (T5), or gated GELU, which
/// is GEGLU with the tanh approximation (T5 v1.1; Shazeer 2020).
enum class FeedForwardKind { relu, gated_gelu };

/// The sizes of a T5, under the names and with the defaults of Hugging Face's T5Config, which has
/// no default of decoder_start_token_id.
struct Config {
  int64_t vocab_size = 32128;
  int64_t d_model = 512;
  int64_t d_kv = 64;
  int64_t d_ff = 2048;
  int64_t num_layers = 6;
  std::optional<int64_t> num_decoder_layers;
  int64_t num_heads = 8;
  int64_t relative_attention_num_buckets = 32;
  int64_t relative_attention_max_distance = 128;
  double dropout_rate = 0.1;
  double layer_norm_epsilon = 1e-6;
  double initializer_factor = 1;
  FeedForwardKind feed_forward_proj = FeedForwardKind::relu;
  bool tie_word_embeddings = true;
  bool scale_decoder_outputs = true;
  int64_t pad_token_id = 0;
  int64_t eos_token_id = 1;
  int64_t decoder_start_token_id = 0;

  /// Blocks of the decoder: num_decoder_layers, or num_layers where that is not set.
  int64_t decoder_layers() const { return num_decoder_layers.value_or(num_layers); }
  /// Width of all heads together.
  int64_t heads_width() const { return num_heads * d_kv; }

  static void describe(config::Schema<Config>& s);
};

}  // namespace phalanx::t5
