// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "models/llama/config.h"
#include "tests/models/causal_model.h"
#include "trainer/api/parameters.h"
#include "trainer/api/units.h"
#include "trainer/config/tree/schema.h"
#include "trainer/memory/deferred_init.h"
#include "trainer/tensors/random.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

llama::Config tiny() {
  llama::Config config;
  config.vocab_size = 61;
  config.hidden_size = 24;
  config.intermediate_size = 40;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.max_position_embeddings = 16;
  return config;
}

at::Tensor some_tokens(int64_t length) {
  return tensors::empty({1, length}, at::kLong).random_(0, 61);
}

// As published: Llama 3.2 1B and 3.1 8B (Grattafiori et al. 2024), Qwen2 0.5B (Yang et al. 2024).
// The models take no memory here.
TEST(Llama, PresetsHaveThePublishedSizes) {
  const std::map<std::string, int64_t> published = {
      {"llama-3.2-1b", 1235814400}, {"llama-3.1-8b", 8030261248}, {"qwen2-0.5b", 494032768}};
  for (const auto& preset : config::declaration<llama::Config>().presets()) {
    if (!published.contains(preset.name)) continue;
    config::Node section = config::write(llama::Config());
    for (const auto& [key, origin, value] : preset.values.entries) section.set(key, value);
    std::unique_ptr<CausalModel> model;
    const auto deferred =
        DeferredInit::record([&] { model = std::make_unique<CausalModel>("llama", section); });
    EXPECT_EQ(count_parameters(*model), published.at(preset.name)) << preset.name;
  }
}

TEST(Llama, BlocksAreUnits) {
  CausalModel model("llama", config::write(tiny()));
  const auto found = units(model.module());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].name, "layers.1");
}

TEST(Llama, NoPlaceSeesALaterOne) {
  seed_everything(1, at::kCPU);
  CausalModel model("llama", config::write(tiny()));
  const at::Tensor tokens = some_tokens(9);
  const at::Tensor before = model.interface().logits(tokens);
  tokens.select(1, 8).fill_(tokens.select(1, 8).item().toLong() == 3 ? 4 : 3);
  const at::Tensor after = model.interface().logits(tokens);
  EXPECT_TRUE(after.narrow(1, 0, 8).equal(before.narrow(1, 0, 8)));
  EXPECT_FALSE(after.select(1, 8).equal(before.select(1, 8)));
}

// Rotary positions are relative: a document elsewhere in a sequence has the logits that it has
// alone, within rounding.
TEST(Llama, DocumentsOfASequenceDoNotSeeEachOther) {
  seed_everything(1, at::kCPU);
  CausalModel model("llama", config::write(tiny()));
  const at::Tensor first = some_tokens(5);
  const at::Tensor second = some_tokens(7);
  const at::Tensor both = at::cat({first, second}, 1);
  const at::Tensor positions = at::cat({at::arange(5), at::arange(7)}).unsqueeze(0);
  const at::Tensor together = model.interface().logits_by_document(both, positions);
  const at::Tensor alone =
      at::cat({model.interface().logits(first), model.interface().logits(second)}, 1);
  EXPECT_LT((together - alone).abs().max().item().toDouble(), 1e-6);
}

TEST(Llama, RefusesMoreThanItsContext) {
  CausalModel model("llama", config::write(tiny()));
  EXPECT_THROW(model.interface().logits(some_tokens(17)), std::invalid_argument);
}

TEST(Llama, OneHeadServesBothEndsIfTied) {
  llama::Config config = tiny();
  const auto count = [&] {
    CausalModel model("llama", config::write(config));
    return count_parameters(model);
  };
  const int64_t untied = count();
  config.tie_word_embeddings = true;
  EXPECT_EQ(untied - count(), 61 * 24);
}

}  // namespace
}  // namespace phalanx
