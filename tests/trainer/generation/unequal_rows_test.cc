// SPDX-License-Identifier: Apache-2.0
// Texts of unequal lengths for a model that cannot leave out padding: each step calls it once.

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/gpt2/config.h"
#include "tests/models/gpt2/registered_gpt2.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/api/modules.h"
#include "trainer/api/parameters.h"
#include "trainer/generation/any_rank.h"
#include "trainer/generation/generate.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/tensors/random.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

using Texts = std::vector<std::vector<int32_t>>;

const Texts kPrompts{{5, 17, 3}, {9}, {40, 41, 42, 43, 44, 45}, {8, 8}};

/// Neither separates documents nor keeps a cache; counts its calls.
class Counting : public RegisteredGpt2 {
 public:
  explicit Counting(const gpt2::Config& config) : RegisteredGpt2(config) {}

  at::Tensor logits(const at::Tensor& tokens) override {
    ++calls;
    return RegisteredGpt2::logits(tokens);
  }

  int64_t calls = 0;
};

/// In float64, with weights so large that texts do not repeat one token.
std::unique_ptr<Counting> make() {
  seed_everything(3);
  gpt2::Config config;
  config.vocab_size = 61;
  config.n_positions = 16;
  config.n_embd = 24;
  config.n_layer = 2;
  config.n_head = 2;
  auto model = std::make_unique<Counting>(config);
  to_double(*model);
  set_training(*model, false);
  const at::NoGradGuard no_grad;
  for (const auto& parameter : named_parameters(*model)) {
    parameter.tensor.add_(
        tensors::empty(parameter.tensor.sizes(), parameter.tensor.options()).normal_(0, 0.3));
  }
  return model;
}

Texts write(CausalLanguageModel& model, const Texts& prompts, int64_t tokens,
            const GenerationHooks& hooks = {}) {
  std::vector<GenerationInput> inputs;
  for (const auto& prompt : prompts) {
    inputs.push_back({.tokens = prompt, .number = static_cast<int64_t>(inputs.size())});
  }
  GenerationConfig config;
  config.max_new_tokens = tokens;
  Texts texts;
  for (const auto& each : generate(model, inputs, {.vocabulary_size = 61}, config, hooks)) {
    texts.push_back(each.tokens);
  }
  return texts;
}

Texts write_one_by_one(CausalLanguageModel& model, const Texts& prompts, int64_t tokens) {
  Texts texts;
  for (const auto& prompt : prompts) texts.push_back(write(model, {prompt}, tokens).front());
  return texts;
}

TEST(UnequalRows, AreReadTogetherAsEachByItself) {
  const auto model = make();
  constexpr int64_t kBeyondTheContext = 25;
  const Texts expected = write_one_by_one(*model, kPrompts, kBeyondTheContext);
  model->calls = 0;
  EXPECT_EQ(write(*model, kPrompts, kBeyondTheContext), expected);
  EXPECT_EQ(model->calls, kBeyondTheContext);
}

TEST(UnequalRows, CallAShardedModelAsOftenOnEveryRank) {
  const auto outcome = in_ranks(
      2,
      [](World& world) {
        const Ranks& ranks = world.ranks();
        const Texts prompts = ranks.is_first() ? kPrompts : Texts{{30, 31}};
        const int64_t tokens = ranks.is_first() ? 9 : 4;
        const Texts expected = write_one_by_one(*make(), prompts, tokens);
        const auto model = make();
        const auto fsdp = prepare_fsdp(model->module(), ranks, ShardingStrategy::full_shard);
        Texts written;
        fsdp->use(
            [&] { written = write(*model, prompts, tokens, {.any_rank = any_rank_of(ranks)}); });
        require(written == expected, "the texts of each prompt by itself");
      },
      {.timeout = std::chrono::seconds(20)});
  EXPECT_EQ(outcome, RankOutcome{});
}

}  // namespace
}  // namespace phalanx
