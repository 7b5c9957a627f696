// SPDX-License-Identifier: Apache-2.0
#include "models/gpt2/config.h"

#include <fmt/format.h>

#include "models/layers/limits.h"
#include "trainer/config/tree/schema.h"

namespace phalanx::gpt2 {

void Config::describe(config::Schema<Config>& s) {
  s.field("vocab_size", &Config::vocab_size, "number of different tokens")
      .in_range(1, kLargestVocabulary);
  s.field("n_positions", &Config::n_positions, "longest sequence, in tokens")
      .in_range(1, kLongestSequence);
  s.field("n_embd", &Config::n_embd, "width of the residual stream; a multiple of n_head")
      .in_range(1, kWidestStates);
  s.field("n_layer", &Config::n_layer, "number of blocks").in_range(1, kMostBlocks);
  s.field("n_head", &Config::n_head, "attention heads a block").in_range(1, kMostHeads);
  s.field("n_inner", &Config::n_inner, "width of a block's hidden layer; null: 4 * n_embd")
      .in_range(1, kWidestHiddenLayer);
  s.field("embd_pdrop", &Config::embd_pdrop, "dropout after the embeddings")
      .at_least(0)
      .less_than(1);
  s.field("attn_pdrop", &Config::attn_pdrop,
          "dropout of attention weights; above 0 the fused CPU kernel cannot be used")
      .at_least(0)
      .less_than(1);
  s.field("resid_pdrop", &Config::resid_pdrop, "dropout before each residual addition")
      .at_least(0)
      .less_than(1);
  s.field("layer_norm_epsilon", &Config::layer_norm_epsilon, "added to the variance")
      .greater_than(0);
  s.field("initializer_range", &Config::initializer_range,
          "standard deviation of the initial weights")
      .in_range(0, kLargestSpread);
  // Published sizes (Radford et al. 2019), named by their actual number of parameters.
  const auto size = [&s](const char* name, const char* published, int64_t layers, int64_t heads,
                         int64_t width) {
    s.preset(name, published, [=](Config& config) {
      config.n_layer = layers;
      config.n_head = heads;
      config.n_embd = width;
    });
  };
  size("gpt2-124m", "GPT-2 small", 12, 12, 768);
  size("gpt2-355m", "GPT-2 medium", 24, 16, 1024);
  size("gpt2-774m", "GPT-2 large", 36, 20, 1280);
  size("gpt2-1558m", "GPT-2 XL", 48, 25, 1600);
  s.check([](const Config& c) -> std::optional<std::string> {
    if (c.n_embd % c.n_head == 0) return std::nullopt;
    return fmt::format("n_embd ({}) must be a multiple of n_head ({})", c.n_embd, c.n_head);
  });
}

}  // namespace phalanx::gpt2
