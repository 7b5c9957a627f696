// SPDX-License-Identifier: Apache-2.0
// What ranks hold of a model, as the check of memory counts it.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "models/gpt2/gpt2.h"
#include "trainer/mixins/parallel_mixin.h"
#include "trainer/mixins/parameter_server_mixin.h"
#include "trainer/mixins/remote_embedding_mixin.h"
#include "trainer/plan/run_plan.h"

namespace phalanx {
namespace {

/// "values gradient state" of those that are held.
std::string text_of(const HeldParts& parts) {
  std::string text;
  if (parts.values) text += "values ";
  if (parts.gradient) text += "gradient ";
  if (parts.state) text += "state ";
  return text;
}

/// Its head is tied to wte; wpe is only looked up.
Gpt2 model() {
  Gpt2::Config config;
  config.vocab_size = 16;
  config.n_positions = 8;
  config.n_layer = 1;
  config.n_head = 1;
  config.n_embd = 4;
  return Gpt2(config);
}

constexpr const char* kAll = "values gradient state ";

TEST(HeldParts, OfParameterServersAreStatesOnTheServerOfEachParameter) {
  RunPlan plan;
  ParameterServerMixinBase::fill_plan({.servers = 2}, plan);
  EXPECT_FALSE(plan.has_fsdp);
  Gpt2 gpt2 = model();
  const auto first = plan.held_parts(gpt2, 0, 3);
  const auto second = plan.held_parts(gpt2, 1, 3);
  const auto third = plan.held_parts(gpt2, 2, 3);
  int64_t of_first = 0;
  for (const auto& [name, parts] : first) {
    EXPECT_NE(parts.state, second.at(name).state) << name;
    EXPECT_EQ(text_of(third.at(name)), "values gradient ") << name;
    if (parts.state) ++of_first;
  }
  EXPECT_GT(of_first, 0);
  EXPECT_LT(of_first, static_cast<int64_t>(first.size()));
}

TEST(HeldParts, OfRemoteEmbeddingsAreTablesOnTheirServer) {
  RunPlan plan;
  RemoteEmbeddingMixinBase::fill_plan({.servers = 1}, plan);
  EXPECT_FALSE(plan.has_fsdp);
  Gpt2 gpt2 = model();
  const auto trains = plan.held_parts(gpt2, 0, 3);
  EXPECT_EQ(text_of(trains.at("wte.weight")), "values gradient ");
  EXPECT_EQ(text_of(trains.at("wpe.weight")), "");
  EXPECT_EQ(text_of(trains.at("ln_f.weight")), kAll);
  const auto serves = plan.held_parts(gpt2, 2, 3);
  EXPECT_EQ(text_of(serves.at("wte.weight")), kAll);
  EXPECT_EQ(text_of(serves.at("wpe.weight")), kAll);
  EXPECT_EQ(text_of(serves.at("ln_f.weight")), "values ");
}

TEST(HeldParts, OfDdpAreAlikeOnAllRanks) {
  RunPlan plan;
  ParallelMixinBase::fill_plan({}, plan);
  EXPECT_FALSE(plan.held_parts);
  EXPECT_TRUE(plan.has_fsdp);
}

}  // namespace
}  // namespace phalanx
