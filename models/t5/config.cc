// SPDX-License-Identifier: Apache-2.0
#include "models/t5/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "models/layers/limits.h"
#include "trainer/config/tree/schema.h"

namespace phalanx::t5 {
namespace {

std::optional<std::string> mistake_in(const Config& c) {
  if (c.relative_attention_max_distance <= c.relative_attention_num_buckets / 2) {
    return fmt::format(
        "relative_attention_max_distance ({}) must be above half of "
        "relative_attention_num_buckets ({}): shorter distances have a bucket each",
        c.relative_attention_max_distance, c.relative_attention_num_buckets);
  }
  const int64_t largest = std::max({c.pad_token_id, c.eos_token_id, c.decoder_start_token_id});
  if (largest >= c.vocab_size) {
    return fmt::format(
        "pad_token_id, eos_token_id and decoder_start_token_id must be below "
        "vocab_size ({}); one is {}",
        c.vocab_size, largest);
  }
  return std::nullopt;
}

void describe_presets(config::Schema<Config>& s) {
  const auto sizes = [](int64_t layers, int64_t heads, int64_t width, int64_t head_width,
                        int64_t inner) {
    return [=](Config& config) {
      config.num_layers = layers;
      config.num_heads = heads;
      config.d_model = width;
      config.d_kv = head_width;
      config.d_ff = inner;
    };
  };
  const auto sizes_v1_1 = [&](int64_t layers, int64_t heads, int64_t width, int64_t inner) {
    return [set_sizes = sizes(layers, heads, width, /*head_width=*/64, inner)](Config& config) {
      set_sizes(config);
      config.feed_forward_proj = FeedForwardKind::gated_gelu;
      config.tie_word_embeddings = config.scale_decoder_outputs = false;
    };
  };
  s.preset("t5-small", "T5 small, 61M parameters", sizes(6, 8, 512, 64, 2048));
  s.preset("t5-base", "T5 base, 223M", sizes(12, 12, 768, 64, 3072));
  s.preset("t5-large", "T5 large, 738M", sizes(24, 16, 1024, 64, 4096));
  s.preset("t5-3b", "T5 3B", sizes(24, 32, 1024, 128, 16384));
  s.preset("t5-v1.1-small", "T5 v1.1 small, 77M parameters", sizes_v1_1(8, 6, 512, 1024));
  s.preset("t5-v1.1-base", "T5 v1.1 base, 248M", sizes_v1_1(12, 12, 768, 2048));
  s.preset("t5-v1.1-large", "T5 v1.1 large, 783M", sizes_v1_1(24, 16, 1024, 2816));
  s.preset("t5-v1.1-xl", "T5 v1.1 XL, 3B", sizes_v1_1(24, 32, 2048, 5120));
}

void describe_tokens(config::Schema<Config>& s) {
  s.field("pad_token_id", &Config::pad_token_id, "token that fills rows of a batch").at_least(0);
  s.field("eos_token_id", &Config::eos_token_id, "token that ends a sequence").at_least(0);
  s.field("decoder_start_token_id", &Config::decoder_start_token_id,
          "token that the decoder begins with")
      .at_least(0);
}

}  // namespace

void Config::describe(config::Schema<Config>& s) {
  s.field("vocab_size", &Config::vocab_size, "number of different tokens")
      .in_range(1, kLargestVocabulary);
  s.field("d_model", &Config::d_model, "width of the residual stream").in_range(1, kWidestStates);
  s.field("d_kv", &Config::d_kv, "width of a head").in_range(1, kWidestHead);
  s.field("d_ff", &Config::d_ff, "width of a block's hidden layer").in_range(1, kWidestHiddenLayer);
  s.field("num_layers", &Config::num_layers, "blocks of the encoder").in_range(1, kMostBlocks);
  s.field("num_decoder_layers", &Config::num_decoder_layers,
          "blocks of the decoder; null: num_layers")
      .in_range(1, kMostBlocks);
  s.field("num_heads", &Config::num_heads, "attention heads a block").in_range(1, kMostHeads);
  s.field("relative_attention_num_buckets", &Config::relative_attention_num_buckets,
          "relative positions that attention tells apart")
      .in_range(4, kLongestSequence);
  s.field("relative_attention_max_distance", &Config::relative_attention_max_distance,
          "distance from which on all are one bucket")
      .in_range(1, kLongestSequence)
      .unit("tokens");
  s.field(
       "dropout_rate", &Config::dropout_rate,
       "dropout of embeddings, attention weights, hidden layers, residual additions and the output "
       "of each stack")
      .at_least(0)
      .less_than(1);
  s.field("layer_norm_epsilon", &Config::layer_norm_epsilon, "added to the mean square")
      .greater_than(0);
  s.field("initializer_factor", &Config::initializer_factor, "scales all initial weights")
      .in_range(0, kLargestSpread);
  s.field("feed_forward_proj", &Config::feed_forward_proj,
          "a block's hidden layer: relu in T5, gated-gelu in T5 v1.1")
      .choices({{"relu", FeedForwardKind::relu}, {"gated-gelu", FeedForwardKind::gated_gelu}});
  s.field("tie_word_embeddings", &Config::tie_word_embeddings,
          "whether the head's weight is that of the embedding; false in T5 v1.1");
  s.field("scale_decoder_outputs", &Config::scale_decoder_outputs,
          "whether the states before the head are multiplied by d_model^-0.5; false in T5 v1.1");
  describe_tokens(s);
  describe_presets(s);
  s.check(mistake_in);
}

}  // namespace phalanx::t5
