// SPDX-License-Identifier: Apache-2.0
// Joins of uneven inputs that would leave ranks without a partner; tests/parity/mlp_parity.py
// compares the others with Python's.

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <stdexcept>
#include <string>

#include "tests/trainer/parallel/ddp_options_of.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/parallel/ddp/ddp.h"

namespace phalanx {
namespace {

// What a join by this hook throws; empty: nothing.
std::string refusal(const Ranks& ranks, const std::string& hook, const UnevenInputs& inputs) {
  torch::nn::Linear module(2, 2);
  const auto engine = prepare_ddp(*module, ranks, ddp_options_of("comm_hook: " + hook));
  try {
    engine->join([] {}, inputs);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

// A rank without inputs makes no updates, and takes no part in the averages after those of others.
TEST(Join, IsRefusedWithAHookThatAveragesParameters) {
  const auto body = [](World& world) {
    const std::string averages = "{name: post_localSGD, start_localSGD_iter: 0, period: 4}";
    const std::string told = refusal(world.ranks(), averages, {});
    require(told.find("averages parameters") != std::string::npos, "it is refused: " + told);
    require(refusal(world.ranks(), averages, {.throw_on_early_termination = true}).empty(),
            "it is allowed where all ranks end together");
    require(refusal(world.ranks(), "bf16_compress", {}).empty(), "another hook is allowed");
  };
  EXPECT_EQ(in_ranks(2, body), RankOutcome{});
}

}  // namespace
}  // namespace phalanx
