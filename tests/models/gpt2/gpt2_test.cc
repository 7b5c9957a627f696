// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/gpt2/config.h"
#include "tests/models/causal_model.h"
#include "tests/models/gpt2/registered_gpt2.h"
#include "trainer/api/parameters.h"
#include "trainer/api/units.h"
#include "trainer/config/tree/schema.h"
#include "trainer/memory/deferred_init.h"
#include "trainer/registry/kinds.h"
#include "trainer/tensors/random.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

gpt2::Config tiny() {
  gpt2::Config config;
  config.vocab_size = 61;
  config.n_positions = 16;
  config.n_embd = 32;
  config.n_layer = 2;
  config.n_head = 4;
  return config;
}

at::Tensor some_tokens(int64_t batch, int64_t length) {
  return tensors::empty({batch, length}, at::kLong).random_(0, 61);
}

at::Tensor rows_of(const std::vector<std::vector<int64_t>>& rows) {
  const auto length = static_cast<int64_t>(rows.front().size());
  at::Tensor tensor = tensors::empty({static_cast<int64_t>(rows.size()), length}, at::kLong);
  auto* place = tensor.mutable_data_ptr<int64_t>();
  for (const auto& row : rows) place = std::copy(row.begin(), row.end(), place);
  return tensor;
}

std::map<std::string, std::vector<int64_t>> shapes(RegisteredGpt2& model) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, tensor, shard, is_table] : named_parameters(model))
    shapes[name] = tensor.sizes().vec();
  return shapes;
}

TEST(Gpt2, NamesAndShapesAreHuggingFaces) {
  RegisteredGpt2 model(tiny());
  const auto found = shapes(model);
  EXPECT_EQ(found.size(), 2u + 2 * 12 + 2);
  EXPECT_EQ(found.at("wte.weight"), (std::vector<int64_t>{61, 32}));
  EXPECT_EQ(found.at("wpe.weight"), (std::vector<int64_t>{16, 32}));
  EXPECT_EQ(found.at("h.1.ln_1.bias"), (std::vector<int64_t>{32}));
  EXPECT_EQ(found.at("h.1.attn.c_attn.weight"), (std::vector<int64_t>{32, 96}));
  EXPECT_EQ(found.at("h.1.attn.c_proj.bias"), (std::vector<int64_t>{32}));
  EXPECT_EQ(found.at("h.0.mlp.c_fc.weight"), (std::vector<int64_t>{32, 128}));
  EXPECT_EQ(found.at("h.0.mlp.c_proj.weight"), (std::vector<int64_t>{128, 32}));
  EXPECT_EQ(found.at("ln_f.weight"), (std::vector<int64_t>{32}));
}

// As transformers counts the published weights. The models take no memory here.
TEST(Gpt2, PresetsHaveThePublishedSizes) {
  const std::map<std::string, int64_t> published = {{"gpt2-124m", 124439808},
                                                    {"gpt2-355m", 354823168},
                                                    {"gpt2-774m", 774030080},
                                                    {"gpt2-1558m", 1557611200}};
  const auto& presets = config::declaration<gpt2::Config>().presets();
  EXPECT_EQ(presets.size(), published.size());
  for (const auto& preset : presets) {
    config::Node section = config::write(gpt2::Config());
    for (const auto& [key, origin, value] : preset.values.entries) section.set(key, value);
    std::unique_ptr<CausalModel> model;
    const auto deferred =
        DeferredInit::record([&] { model = std::make_unique<CausalModel>("gpt2", section); });
    EXPECT_EQ(count_parameters(*model), published.at(preset.name)) << preset.name;
  }
}

TEST(Gpt2, InnerWidthCanBeSet) {
  auto config = tiny();
  config.n_inner = 40;
  RegisteredGpt2 model(config);
  EXPECT_EQ(shapes(model).at("h.0.mlp.c_fc.weight"), (std::vector<int64_t>{32, 40}));
}

TEST(Gpt2, BlocksAreUnits) {
  RegisteredGpt2 model(tiny());
  const auto found = units(model.module());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "h.0");
  EXPECT_EQ(found[1].name, "h.1");
}

TEST(Gpt2, EmbeddingsNormsAndBiasesAreNotDecayed) {
  RegisteredGpt2 model(tiny());
  const auto groups = default_parameter_groups(model);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].parameters.size(), 2u * 4);
  for (const auto& parameter : groups[0].parameters) {
    EXPECT_EQ(parameter.tensor.dim(), 2) << parameter.name;
    EXPECT_EQ(parameter.name.rfind("h.", 0), 0u) << parameter.name;
  }
}

TEST(Gpt2, StartsFromGpt2sDistributions) {
  seed_everything(1);
  auto config = tiny();
  config.n_embd = 128;
  config.n_layer = 8;
  RegisteredGpt2 model(config);
  for (const auto& [name, tensor, shard, is_table] : named_parameters(model)) {
    const double mean = tensor.mean().item<double>();
    if (tensor.dim() == 1) {
      const bool scale = name.ends_with("weight");
      EXPECT_TRUE(tensor.eq(scale ? 1.0 : 0.0).all().item<bool>()) << name;
      continue;
    }
    const double expected = name.ends_with("c_proj.weight") ? 0.02 / std::sqrt(16.0) : 0.02;
    const auto count = static_cast<double>(tensor.numel());
    // Five standard errors of the mean and of the standard deviation.
    EXPECT_NEAR(mean, 0, 5 * expected / std::sqrt(count)) << name;
    EXPECT_NEAR(tensor.std().item<double>(), expected, 5 * expected / std::sqrt(2 * count)) << name;
  }
}

TEST(Gpt2, NoTokenSeesThoseAfterIt) {
  RegisteredGpt2 model(tiny());
  set_training(model, false);
  const at::Tensor tokens = some_tokens(2, 10);
  const at::Tensor before = model.logits(tokens);
  EXPECT_EQ(before.sizes(), at::IntArrayRef({2, 10, 61}));
  const at::Tensor changed = tokens.clone();
  changed.select(1, 6).add_(1).remainder_(61);
  const at::Tensor after = model.logits(changed);
  EXPECT_TRUE(before.narrow(1, 0, 6).equal(after.narrow(1, 0, 6)));
  EXPECT_FALSE(before.narrow(1, 6, 4).allclose(after.narrow(1, 6, 4)));
}

// A sequence of documents gives what each of them gives alone.
TEST(Gpt2, DocumentsOfASequenceDoNotSeeEachOther) {
  RegisteredGpt2 model(tiny());
  to_double(model);
  set_training(model, false);
  const at::Tensor tokens = some_tokens(2, 12);
  const at::Tensor positions =
      rows_of({{0, 1, 2, 3, 4, 0, 0, 1, 2, 3, 4, 5}, {0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}});
  const at::Tensor both = model.logits_by_document(tokens, positions);
  struct Part {
    int64_t row, begin, length;
  };
  for (const Part& part : {Part{0, 0, 5}, {0, 5, 1}, {0, 6, 6}, {1, 0, 2}, {1, 2, 10}}) {
    const auto part_of = [&](const at::Tensor& whole) {
      return whole.narrow(0, part.row, 1).narrow(1, part.begin, part.length);
    };
    EXPECT_TRUE(part_of(both).allclose(model.logits(part_of(tokens)), 1e-12, 1e-12));
  }
  const std::vector<int64_t> row{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const at::Tensor whole = rows_of({row, row});
  EXPECT_TRUE(model.logits_by_document(tokens, whole).allclose(model.logits(tokens), 1e-12, 1e-12));
}

TEST(Gpt2, EveryDropoutActsInTrainingOnly) {
  const at::Tensor tokens = some_tokens(2, 10);
  for (auto probability :
       {&gpt2::Config::embd_pdrop, &gpt2::Config::attn_pdrop, &gpt2::Config::resid_pdrop}) {
    auto config = tiny();
    config.embd_pdrop = config.attn_pdrop = config.resid_pdrop = 0;
    config.*probability = 0.5;
    RegisteredGpt2 model(config);
    set_training(model, false);
    const at::Tensor expected = model.logits(tokens);
    EXPECT_TRUE(expected.equal(model.logits(tokens)));
    set_training(model, true);
    EXPECT_FALSE(expected.allclose(model.logits(tokens)));
  }
}

TEST(Gpt2, HeadIsTheTokenEmbedding) {
  RegisteredGpt2 model(tiny());
  model.logits(some_tokens(1, 4)).sum().backward();
  // A token that does not occur has a gradient only through the head.
  for (const auto& [name, tensor, shard, is_table] : named_parameters(model)) {
    EXPECT_TRUE(tensor.grad().defined()) << name;
    if (name == "wte.weight") {
      EXPECT_TRUE(tensor.grad().abs().sum(1).gt(0).all().item<bool>());
    }
  }
}

TEST(Gpt2, ComputesInDoublePrecision) {
  RegisteredGpt2 model(tiny());
  set_training(model, false);
  const at::Tensor tokens = some_tokens(2, 10);
  const at::Tensor single = model.logits(tokens);
  to_double(model);
  const at::Tensor both = model.logits(tokens);
  EXPECT_EQ(both.scalar_type(), at::kDouble);
  EXPECT_TRUE(single.to(at::kDouble).allclose(both, 1e-4, 1e-5));
}

TEST(Gpt2, RefusesMoreTokensThanPositions) {
  RegisteredGpt2 model(tiny());
  EXPECT_NO_THROW(model.logits(some_tokens(1, 16)));
  EXPECT_THROW(model.logits(some_tokens(1, 17)), std::invalid_argument);
}

TEST(Gpt2, IsRegisteredForCausalLanguageModeling) {
  const auto& entry = Registry<ModelBase>::instance().at("gpt2");
  ASSERT_EQ(entry.interfaces.size(), 1u);
  EXPECT_EQ(entry.interfaces[0], CausalLanguageModel::kInterface);
}

TEST(Gpt2, WidthMustBeAMultipleOfTheHeads) {
  auto config = tiny();
  config.n_head = 5;
  const auto& checks = config::declaration<gpt2::Config>().checks();
  ASSERT_EQ(checks.size(), 1u);
  const auto error = checks[0](config::write(config));
  ASSERT_TRUE(error.has_value());
  EXPECT_NE(error->find("multiple of n_head (5)"), std::string::npos);
  EXPECT_FALSE(checks[0](config::write(tiny())).has_value());
}

}  // namespace
}  // namespace phalanx
