// SPDX-License-Identifier: Apache-2.0
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/t5/config.h"
#include "tests/models/t5/registered_t5.h"
#include "trainer/api/modules.h"
#include "trainer/api/parameters.h"
#include "trainer/api/units.h"
#include "trainer/config/tree/schema.h"
#include "trainer/memory/deferred_init.h"
#include "trainer/registry/kinds.h"
#include "trainer/tensors/random.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

at::Tensor some_tokens(int64_t batch, int64_t length) {
  return tensors::empty({batch, length}, at::kLong).random_(0, 61);
}

// In double precision, without dropout.
RegisteredT5 exact(const t5::Config& config) {
  RegisteredT5 model(config);
  to_double(model);
  set_training(model, false);
  return model;
}

// The mask of two rows with `length` places: the last `padding` places of the second are padding.
at::Tensor mask_with_padding(int64_t length, int64_t padding) {
  at::Tensor mask = tensors::empty({2, length}, at::kBool).fill_(true);
  mask.select(0, 1).narrow(0, length - padding, padding).fill_(false);
  return mask;
}

bool close(const at::Tensor& a, const at::Tensor& b) { return a.allclose(b, 1e-12, 1e-12); }

std::map<std::string, std::vector<int64_t>> shapes(RegisteredT5& model) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, tensor, shard, is_table] : named_parameters(model)) {
    shapes[name] = tensor.sizes().vec();
  }
  return shapes;
}

TEST(T5, NamesAndShapesAreHuggingFaces) {
  RegisteredT5 model(tiny_t5());
  const auto found = shapes(model);
  // The embedding; a half's table and last norm; blocks of 8 and 13.
  EXPECT_EQ(found.size(), 1u + 2 * 2 + 2 * (8 + 13));
  EXPECT_EQ(found.at("shared.weight"), (std::vector<int64_t>{61, 24}));
  EXPECT_EQ(found.at("encoder.block.1.layer.0.SelfAttention.q.weight"),
            (std::vector<int64_t>{32, 24}));
  EXPECT_EQ(found.at("decoder.block.1.layer.1.EncDecAttention.o.weight"),
            (std::vector<int64_t>{24, 32}));
  EXPECT_EQ(found.at("encoder.block.0.layer.1.DenseReluDense.wi.weight"),
            (std::vector<int64_t>{40, 24}));
  EXPECT_EQ(found.at("decoder.block.0.layer.2.DenseReluDense.wo.weight"),
            (std::vector<int64_t>{24, 40}));
  EXPECT_EQ(found.at("decoder.block.0.layer.2.layer_norm.weight"), (std::vector<int64_t>{24}));
  EXPECT_EQ(found.at("decoder.final_layer_norm.weight"), (std::vector<int64_t>{24}));
}

TEST(T5, VersionOnePointOneIsGatedWithAHeadOfItsOwn) {
  RegisteredT5 model(tiny_t5_v1_1());
  const auto found = shapes(model);
  EXPECT_EQ(found.at("lm_head.weight"), (std::vector<int64_t>{61, 24}));
  for (const std::string name : {"wi_0", "wi_1"}) {
    EXPECT_EQ(found.at("encoder.block.1.layer.1.DenseReluDense." + name + ".weight"),
              (std::vector<int64_t>{40, 24}));
  }
  EXPECT_FALSE(found.contains("encoder.block.1.layer.1.DenseReluDense.wi.weight"));
}

TEST(T5, TheFirstBlockOfEachHalfOwnsTheTableOfPositions) {
  RegisteredT5 model(tiny_t5());
  std::vector<std::string> tables;
  for (const auto& [name, shape] : shapes(model)) {
    if (!name.ends_with("relative_attention_bias.weight")) continue;
    tables.push_back(name);
    EXPECT_EQ(shape, (std::vector<int64_t>{8, 4}));
  }
  EXPECT_EQ(tables, (std::vector<std::string>{
                        "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
                        "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"}));
}

TEST(T5, BlocksAreUnitsOfTheGuidesName) {
  t5::Config config = tiny_t5();
  config.num_decoder_layers = 1;
  RegisteredT5 model(config);
  const auto found = units(model.module());
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[1].name, "encoder.block.1");
  EXPECT_EQ(found[2].name, "decoder.block.0");
  EXPECT_EQ(matching(found, {"T5Block"}, "names").size(), 3u);
}

TEST(T5, EmbeddingsAndNormsAreNotDecayed) {
  RegisteredT5 model(tiny_t5());
  const auto groups = default_parameter_groups(model);
  ASSERT_EQ(groups.size(), 2u);
  for (const auto& [name, tensor, shard, is_table] : groups[1].parameters) {
    EXPECT_TRUE(name.ends_with("norm.weight") || name.ends_with("attention_bias.weight") ||
                name == "shared.weight")
        << name;
  }
  EXPECT_EQ(groups[1].parameters.size(), 1u + 2 * 2 + 2 * (2 + 3));
}

// By the last two parts of a name: the square of its inverse is what the variance is over.
double expected_std(const std::string& name, const t5::Config& c) {
  const auto over = [&](int64_t count) {
    return c.initializer_factor / std::sqrt(static_cast<double>(count));
  };
  if (name == "shared.weight" || name == "lm_head.weight") return over(1);
  if (name.ends_with(".q.weight")) return over(c.d_model * c.d_kv);
  if (name.ends_with(".o.weight")) return over(c.num_heads * c.d_kv);
  if (name.ends_with(".wo.weight")) return over(c.d_ff);
  return over(c.d_model);
}

TEST(T5, StartsFromItsDistributions) {
  seed_everything(1);
  t5::Config config = tiny_t5_v1_1();
  config.d_model = 96;
  config.d_ff = 200;
  config.initializer_factor = 1.5;
  RegisteredT5 model(config);
  for (const auto& [name, tensor, shard, is_table] : named_parameters(model)) {
    if (tensor.dim() == 1) {
      EXPECT_TRUE(tensor.eq(1.5).all().item<bool>()) << name;
      continue;
    }
    const double expected = expected_std(name, config);
    const auto count = static_cast<double>(tensor.numel());
    // Five standard errors of the mean and of the standard deviation.
    EXPECT_NEAR(tensor.mean().item<double>(), 0, 5 * expected / std::sqrt(count)) << name;
    EXPECT_NEAR(tensor.std().item<double>(), expected, 5 * expected / std::sqrt(2 * count)) << name;
  }
}

TEST(T5, TheDecoderSeesNoLaterToken) {
  for (const t5::Config& config : {tiny_t5(), tiny_t5_v1_1()}) {
    RegisteredT5 model = exact(config);
    const at::Tensor inputs = some_tokens(2, 7);
    const at::Tensor outputs = some_tokens(2, 10);
    const at::Tensor before = model.logits(inputs, {}, outputs);
    EXPECT_EQ(before.sizes(), at::IntArrayRef({2, 10, 61}));
    const at::Tensor changed = outputs.clone();
    changed.select(1, 6).add_(1).remainder_(61);
    const at::Tensor after = model.logits(inputs, {}, changed);
    EXPECT_TRUE(close(before.narrow(1, 0, 6), after.narrow(1, 0, 6)));
    EXPECT_FALSE(close(before.narrow(1, 6, 4), after.narrow(1, 6, 4)));
  }
}

TEST(T5, TheEncoderSeesEveryTokenAndTheDecoderWhatItGives) {
  RegisteredT5 model = exact(tiny_t5());
  const at::Tensor inputs = some_tokens(2, 7);
  const at::Tensor changed = inputs.clone();
  changed.select(1, 6).add_(1).remainder_(61);
  const at::Tensor before = model.encode(inputs, {});
  const at::Tensor after = model.encode(changed, {});
  EXPECT_EQ(before.sizes(), at::IntArrayRef({2, 7, 24}));
  EXPECT_FALSE(close(before.select(1, 0), after.select(1, 0)));
  const at::Tensor outputs = some_tokens(2, 3);
  EXPECT_FALSE(close(model.decode(outputs, before, {}).states.select(1, 0),
                     model.decode(outputs, after, {}).states.select(1, 0)));
}

// A padded row gives what the row alone gives.
TEST(T5, PaddingHasNoEffectOnTheRest) {
  RegisteredT5 model = exact(tiny_t5());
  const at::Tensor inputs = some_tokens(2, 12);
  const at::Tensor mask = mask_with_padding(12, 5);
  const at::Tensor outputs = some_tokens(2, 6);
  const at::Tensor logits = model.logits(inputs, mask, outputs);
  const at::Tensor encoded = model.encode(inputs, mask);

  const at::Tensor first = inputs.narrow(0, 0, 1);
  EXPECT_TRUE(close(encoded.narrow(0, 0, 1), model.encode(first, {})));
  const at::Tensor second = inputs.narrow(0, 1, 1).narrow(1, 0, 7);
  EXPECT_TRUE(close(encoded.narrow(0, 1, 1).narrow(1, 0, 7), model.encode(second, {})));
  EXPECT_TRUE(close(logits.narrow(0, 1, 1), model.logits(second, {}, outputs.narrow(0, 1, 1))));
  EXPECT_FALSE(close(logits, model.logits(inputs, {}, outputs)));
}

TEST(T5, ARowOfPaddingAloneIsFinite) {
  RegisteredT5 model = exact(tiny_t5());
  const at::Tensor logits =
      model.logits(some_tokens(2, 5), mask_with_padding(5, 5), some_tokens(2, 4));
  EXPECT_TRUE(logits.isfinite().all().item<bool>());
}

TEST(T5, DropoutActsInTrainingOnly) {
  t5::Config config = tiny_t5();
  config.dropout_rate = 0.5;
  RegisteredT5 model(config);
  const at::Tensor inputs = some_tokens(2, 10);
  const at::Tensor outputs = some_tokens(2, 10);
  set_training(model, false);
  const at::Tensor expected = model.logits(inputs, {}, outputs);
  EXPECT_TRUE(expected.equal(model.logits(inputs, {}, outputs)));
  set_training(model, true);
  EXPECT_FALSE(expected.allclose(model.logits(inputs, {}, outputs)));
}

TEST(T5, EveryParameterGetsAGradient) {
  for (const t5::Config& config : {tiny_t5(), tiny_t5_v1_1()}) {
    RegisteredT5 model(config);
    model.logits(some_tokens(2, 7), mask_with_padding(7, 2), some_tokens(2, 5))
        .pow(2)
        .sum()
        .backward();
    for (const auto& [name, tensor, shard, is_table] : named_parameters(model)) {
      ASSERT_TRUE(tensor.grad().defined()) << name;
      EXPECT_TRUE(tensor.grad().any().item<bool>()) << name;
    }
  }
}

TEST(T5, ATiedHeadIsScaled) {
  t5::Config config = tiny_t5();
  RegisteredT5 model = exact(config);
  config.scale_decoder_outputs = false;
  RegisteredT5 unscaled = exact(config);
  const auto to = named_parameters(unscaled);
  const auto from = named_parameters(model);
  for (size_t i = 0; i < to.size(); ++i) to[i].tensor.detach().copy_(from[i].tensor.detach());
  const at::Tensor inputs = some_tokens(2, 7);
  const at::Tensor outputs = some_tokens(2, 5);
  EXPECT_TRUE(close(model.logits(inputs, {}, outputs).mul(std::sqrt(24.0)),
                    unscaled.logits(inputs, {}, outputs)));
}

TEST(T5, IsRegisteredForSequenceToSequence) {
  const auto& entry = Registry<ModelBase>::instance().at("t5");
  ASSERT_EQ(entry.interfaces.size(), 1u);
  EXPECT_EQ(entry.interfaces[0], SequenceToSequenceModel::kInterface);
  t5::Config config = tiny_t5();
  config.decoder_start_token_id = 3;
  RegisteredT5 model(config);
  EXPECT_EQ(model.decoder_start_token(), 3);
  EXPECT_EQ(model.vocabulary_size(), 61);
}

// As published on Hugging Face; built without memory.
TEST(T5, PresetsHaveThePublishedNumbersOfParameters) {
  const std::map<std::string, int64_t> published{
      {"t5-small", 60'506'624},       {"t5-base", 222'903'552},      {"t5-large", 737'668'096},
      {"t5-3b", 2'851'598'336},       {"t5-v1.1-small", 76'961'152}, {"t5-v1.1-base", 247'577'856},
      {"t5-v1.1-large", 783'150'080}, {"t5-v1.1-xl", 2'849'757'184}};
  const auto& presets = config::declaration<t5::Config>().presets();
  EXPECT_EQ(presets.size(), published.size());
  for (const auto& preset : presets) {
    config::Node section = config::write(t5::Config());
    for (const auto& [key, origin, value] : preset.values.entries) section.set(key, value);
    const auto never_drawn = DeferredInit::record([&] {
      RegisteredT5 model(section);
      EXPECT_EQ(count_parameters(model), published.at(preset.name)) << preset.name;
    });
  }
}

TEST(T5, MistakesOfItsConfigAreNamed) {
  const auto& checks = config::declaration<t5::Config>().checks();
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_FALSE(checks[0](config::write(tiny_t5())).has_value());
  auto config = tiny_t5();
  config.relative_attention_max_distance = 4;
  EXPECT_NE(checks[0](config::write(config))->find("max_distance (4)"), std::string::npos);
  config = tiny_t5();
  config.decoder_start_token_id = 61;
  EXPECT_NE(checks[0](config::write(config))->find("vocab_size (61)"), std::string::npos);
}

// Whether LibTorch may ask cuDNN for attention, which plans each shape: once for each call.
std::vector<bool> asks;

std::unique_ptr<at::ObserverContext> note_ask(const at::RecordFunction& function) {
  if (std::string(function.name()) == "aten::scaled_dot_product_attention") {
    asks.push_back(at::globalContext().userEnabledCuDNNSDP());
  }
  return nullptr;
}

TEST(T5, WritesWithoutAttentionThatIsPlannedForEachLength) {
  RegisteredT5 model = exact(tiny_t5());
  const at::NoGradGuard no_grad;
  const at::Tensor encoded = model.encode(some_tokens(1, 5), {});
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(note_ask).scopes({at::RecordScope::FUNCTION}));
  model.decode(some_tokens(1, 3), encoded, {});
  const std::vector<bool> of_all = std::exchange(asks, {});
  DecoderCache cache;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(model.next_states(some_tokens(1, 1), encoded, {}, cache));
  at::removeCallback(handle);
  EXPECT_EQ(of_all, std::vector<bool>(4, true)) << "two blocks, each with two attentions";
  EXPECT_EQ(asks, std::vector<bool>(8, false)) << "keys grow";
  EXPECT_TRUE(at::globalContext().userEnabledCuDNNSDP()) << "as before";
}

}  // namespace
}  // namespace phalanx
