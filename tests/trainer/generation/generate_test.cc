// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/generate.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/tasks/language_modeling/bigram.h"
#include "trainer/api/model_base.h"
#include "trainer/api/modules.h"
#include "trainer/api/parameters.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/kinds.h"
#include "trainer/tensors/random.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

constexpr int64_t kVocabulary = 61;

using Texts = std::vector<std::vector<int32_t>>;

struct TinyModel {
  std::string name;
  std::map<std::string, int64_t> sizes;
};

const TinyModel kGpt2{"gpt2", {{"n_positions", 32}, {"n_embd", 24}, {"n_layer", 2}, {"n_head", 2}}};
const TinyModel kLlama{"llama",
                       {{"hidden_size", 24},
                        {"intermediate_size", 40},
                        {"num_hidden_layers", 2},
                        {"num_attention_heads", 4},
                        {"num_key_value_heads", 2},
                        {"max_position_embeddings", 32}}};
const TinyModel kT5{
    "t5", {{"d_model", 24}, {"d_kv", 8}, {"d_ff", 40}, {"num_layers", 2}, {"num_heads", 3}}};

/// In float64, with weights so large that texts do not repeat one token.
std::shared_ptr<ModelBase> make(const TinyModel& tiny) {
  seed_everything(3);
  const auto& entry = Registry<ModelBase>::instance().at(tiny.name);
  config::Node section = entry.declaration()->defaults();
  section.set("vocab_size", config::Node::integer(kVocabulary));
  for (const auto& [field, size] : tiny.sizes) section.set(field, config::Node::integer(size));
  auto model = entry.make(section);
  to_double(*model);
  set_training(*model, false);
  const at::NoGradGuard no_grad;
  for (const auto& parameter : named_parameters(*model)) {
    parameter.tensor.add_(
        tensors::empty(parameter.tensor.sizes(), parameter.tensor.options()).normal_(0, 0.3));
  }
  return model;
}

std::vector<GenerationInput> inputs_of(const Texts& texts) {
  std::vector<GenerationInput> inputs;
  for (const auto& text : texts) {
    inputs.push_back({.tokens = text, .number = static_cast<int64_t>(inputs.size())});
  }
  return inputs;
}

const Texts kPrompts{{5, 17, 3}, {9}, {40, 41, 42, 43, 44, 45}, {8, 8}};

template <class Interface>
std::vector<Generated> write(ModelBase& model, const std::vector<GenerationInput>& inputs,
                             const GenerationConfig& config, const GenerationHooks& hooks = {}) {
  return generate(*model.as<Interface>(), inputs, {.vocabulary_size = kVocabulary}, config, hooks);
}

std::vector<Generated> write(ModelBase& model, const std::vector<GenerationInput>& inputs,
                             const GenerationConfig& config, const GenerationHooks& hooks = {}) {
  return model.as<CausalLanguageModel>() != nullptr
             ? write<CausalLanguageModel>(model, inputs, config, hooks)
             : write<SequenceToSequenceModel>(model, inputs, config, hooks);
}

Texts tokens_of(const std::vector<Generated>& generated) {
  Texts texts;
  for (const auto& each : generated) texts.push_back(each.tokens);
  return texts;
}

class EachModel : public ::testing::TestWithParam<TinyModel> {};

TEST_P(EachModel, TheCacheChangesNothing) {
  const auto model = make(GetParam());
  for (const int64_t beams : {1, 3}) {
    GenerationConfig config;
    config.max_new_tokens = 20;
    config.num_beams = beams;
    const Texts with = tokens_of(write(*model, inputs_of(kPrompts), config));
    config.use_cache = false;
    EXPECT_EQ(tokens_of(write(*model, inputs_of(kPrompts), config)), with) << beams << " beams";
  }
}

TEST_P(EachModel, ATextDoesNotDependOnItsBatch) {
  const auto model = make(GetParam());
  const auto inputs = inputs_of(kPrompts);
  for (const double temperature : {0.0, 1.0}) {
    GenerationConfig config;
    config.max_new_tokens = 20;
    config.temperature = temperature;
    config.seed = 5;
    config.eos_token_id = {7, 12, 30};
    const Texts together = tokens_of(write(*model, inputs, config));
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_EQ(tokens_of(write(*model, {inputs[i]}, config)).front(), together[i]) << i;
    }
  }
}

TEST_P(EachModel, EndsTextsWhereItShould) {
  const auto model = make(GetParam());
  GenerationConfig config;
  config.max_new_tokens = 12;
  const auto free = write(*model, inputs_of(kPrompts), config);
  for (const auto& each : free) {
    EXPECT_EQ(each.tokens.size(), 12U);
    EXPECT_EQ(each.reason, FinishReason::length);
  }
  const int32_t end = free[0].tokens[4];
  config.eos_token_id = {end};
  const auto ended = write(*model, inputs_of(kPrompts), config);
  EXPECT_EQ(ended[0].reason, FinishReason::eos);
  for (size_t i = 0; i < free.size(); ++i) {
    const auto& all = free[i].tokens;
    const auto place = std::find(all.begin(), all.end(), end);
    EXPECT_EQ(ended[i].tokens, std::vector(all.begin(), place));
  }
}

TEST_P(EachModel, AnInterruptionKeepsWhatIsThere) {
  const auto model = make(GetParam());
  GenerationConfig config;
  config.max_new_tokens = 12;
  const auto free = write(*model, inputs_of(kPrompts), config);
  int asked = 0;
  const auto cut =
      write(*model, inputs_of(kPrompts), config, {.is_interrupted = [&] { return ++asked > 3; }});
  for (size_t i = 0; i < free.size(); ++i) {
    EXPECT_EQ(cut[i].reason, FinishReason::interrupted);
    EXPECT_EQ(cut[i].tokens, std::vector(free[i].tokens.begin(), free[i].tokens.begin() + 3));
  }
}

TEST_P(EachModel, StepsOnWhileOtherRanksWrite) {
  const auto model = make(GetParam());
  GenerationConfig config;
  config.max_new_tokens = 3;
  int steps = 0;
  const auto written = write(*model, inputs_of({{5}}), config, {.any_rank = [&](bool writes) {
    EXPECT_EQ(writes, steps < 2);
    return ++steps < 8;
  }});
  EXPECT_EQ(steps, 8);
  EXPECT_EQ(written.front().tokens.size(), 3U);
}

INSTANTIATE_TEST_SUITE_P(Models, EachModel, ::testing::Values(kGpt2, kLlama, kT5),
                         [](const auto& info) { return info.param.name; });

TEST(Generate, SeesTheEndOfATextThatIsLongerThanTheContext) {
  for (const auto& tiny : {kGpt2, kLlama}) {
    const auto model = make(tiny);
    auto& causal = *model->as<CausalLanguageModel>();
    GenerationConfig config;
    config.max_new_tokens = 45;
    const auto written = write(*model, inputs_of(kPrompts), config);
    for (size_t i = 0; i < kPrompts.size(); ++i) {
      std::vector<int32_t> text = kPrompts[i];
      text.insert(text.end(), written[i].tokens.begin(), written[i].tokens.end());
      // The last token follows from the 32 before it.
      at::Tensor seen = tensors::empty({1, 32}, at::kLong);
      std::copy(text.end() - 33, text.end() - 1, seen.mutable_data_ptr<int64_t>());
      const at::Tensor logits = causal.logits(seen)[0][31];
      EXPECT_EQ(logits.argmax().item<int64_t>(), text.back()) << tiny.name << " " << i;
    }
  }
}

TEST(Generate, DrawsByTheModelsProbabilities) {
  Bigram model(4);
  {
    const at::NoGradGuard no_grad;
    const double odds[] = {1, 2, 3, 4};
    for (int64_t i = 0; i < 4; ++i) model.table().select(1, i).fill_(std::log(odds[i]));
  }
  GenerationConfig config;
  config.max_new_tokens = 4000;
  config.temperature = 1;
  config.seed = 9;
  const auto text =
      generate(model, inputs_of({{0}}), {.vocabulary_size = 4}, config).front().tokens;
  double chi_square = 0;
  for (int32_t token = 0; token < 4; ++token) {
    const double mean = 4000 * (token + 1) / 10.0;
    const double difference =
        static_cast<double>(std::count(text.begin(), text.end(), token)) - mean;
    chi_square += difference * difference / mean;
  }
  EXPECT_LT(chi_square, 45);  // 1e-9 for 3 degrees of freedom.
}

}  // namespace
}  // namespace phalanx
