// SPDX-License-Identifier: Apache-2.0
#include "models/llama/config.h"

#include <fmt/format.h>

#include "models/layers/limits.h"
#include "trainer/config/tree/schema.h"

namespace phalanx::llama {
namespace {

std::optional<std::string> mistake_in(const Config& c) {
  if (c.hidden_size % c.num_attention_heads != 0) {
    return fmt::format("hidden_size ({}) must be a multiple of num_attention_heads ({})",
                       c.hidden_size, c.num_attention_heads);
  }
  if (c.head_width() % 2 != 0) {
    return fmt::format(
        "a head has {} numbers, but rotary positions turn pairs of them: it must be even",
        c.head_width());
  }
  if (c.num_attention_heads % c.kv_heads() != 0) {
    return fmt::format("num_attention_heads ({}) must be a multiple of num_key_value_heads ({})",
                       c.num_attention_heads, c.kv_heads());
  }
  if (c.attention_bias && c.attention_qkv_bias) {
    return "attention_bias includes attention_qkv_bias: drop one";
  }
  if (c.mlp_bias && c.attention_qkv_bias) {
    return "attention_qkv_bias makes the model a Qwen2, which has no biases of the MLP: drop one";
  }
  return std::nullopt;
}

void describe_presets(config::Schema<Config>& s) {
  s.preset("llama-3.2-1b", "Llama 3.2 1B", [](Config& c) {
    c.vocab_size = 128256;
    c.hidden_size = 2048;
    c.intermediate_size = 8192;
    c.num_hidden_layers = 16;
    c.num_key_value_heads = 8;
    c.max_position_embeddings = 131072;
    c.rms_norm_eps = 1e-5;
    c.rope_theta = 500000;
    c.rope_scaling = RotaryScaling{.factor = 32};
    c.tie_word_embeddings = true;
  });
  s.preset("llama-3.1-8b", "Llama 3.1 8B", [](Config& c) {
    c.vocab_size = 128256;
    c.intermediate_size = 14336;
    c.num_key_value_heads = 8;
    c.max_position_embeddings = 131072;
    c.rms_norm_eps = 1e-5;
    c.rope_theta = 500000;
    c.rope_scaling = RotaryScaling{.factor = 8};
  });
  s.preset("qwen2-0.5b", "Qwen2 0.5B", [](Config& c) {
    c.vocab_size = 151936;
    c.hidden_size = 896;
    c.intermediate_size = 4864;
    c.num_hidden_layers = 24;
    c.num_attention_heads = 14;
    c.num_key_value_heads = 2;
    c.max_position_embeddings = 131072;
    c.rope_theta = 1e6;
    c.tie_word_embeddings = true;
    c.attention_qkv_bias = true;
  });
  s.preset("llama-tiny", "none: 1M parameters to try things with, for a vocabulary of bytes",
           [](Config& c) {
             c.vocab_size = 256;
             c.hidden_size = 128;
             c.intermediate_size = 384;
             c.num_hidden_layers = 4;
             c.num_attention_heads = 4;
             c.num_key_value_heads = 2;
             c.max_position_embeddings = 512;
           });
}

}  // namespace

void Config::describe(config::Schema<Config>& s) {
  s.field("vocab_size", &Config::vocab_size, "number of different tokens")
      .in_range(1, kLargestVocabulary);
  s.field("hidden_size", &Config::hidden_size, "width of the residual stream")
      .in_range(1, kWidestStates);
  s.field("intermediate_size", &Config::intermediate_size, "width of a block's gated layer")
      .in_range(1, kWidestHiddenLayer);
  s.field("num_hidden_layers", &Config::num_hidden_layers, "number of blocks")
      .in_range(1, kMostBlocks);
  s.field("num_attention_heads", &Config::num_attention_heads, "heads of queries a block")
      .in_range(1, kMostHeads);
  s.field(
       "num_key_value_heads", &Config::num_key_value_heads,
       "heads of keys and values a block, shared by groups of queries; null: num_attention_heads")
      .in_range(1, kMostHeads);
  s.field("head_dim", &Config::head_dim,
          "numbers of a head, even; null: hidden_size / num_attention_heads")
      .in_range(2, kWidestHead);
  s.field("max_position_embeddings", &Config::max_position_embeddings, "longest sequence")
      .in_range(1, kLongestSequence)
      .unit("tokens");
  s.field("rms_norm_eps", &Config::rms_norm_eps, "added to the mean square").greater_than(0);
  s.field("rope_theta", &Config::rope_theta, "base of the rotary positions' wavelengths")
      .greater_than(1);
  s.field("rope_scaling", &Config::rope_scaling,
          "how Llama 3.1 stretches rotary positions to a longer context; null: not");
  s.field("tie_word_embeddings", &Config::tie_word_embeddings,
          "whether the head's weight is that of the embedding");
  s.field("attention_bias", &Config::attention_bias,
          "whether the four projections of attention have biases");
  s.field("attention_qkv_bias", &Config::attention_qkv_bias,
          "whether queries, keys and values have biases, as in Qwen2");
  s.field("mlp_bias", &Config::mlp_bias, "whether the gated layer's projections have biases");
  s.field("attention_dropout", &Config::attention_dropout, "dropout of attention weights")
      .at_least(0)
      .less_than(1);
  s.field("initializer_range", &Config::initializer_range,
          "standard deviation of the initial weights")
      .in_range(0, kLargestSpread);
  describe_presets(s);
  s.check(mistake_in);
}

}  // namespace phalanx::llama
