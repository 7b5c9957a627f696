// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/letters.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/ranks/stores/key_value_store.h"
#include "trainer/rpc/rpc_error.h"

namespace phalanx::pipeline {
namespace {

TEST(Letters, ComeUnderTheirKeysInAnyOrder) {
  const auto outcome = in_ranks(2, [](World& world) {
    Letters letters(world.ranks());
    if (world.ranks().is_first()) {
      letters.send(1, "b", {.tensors = {at::full({2}, 3.0)}, .text = "later"});
      letters.send(1, "a", {.text = "first"});
      letters.confirm();
    } else {
      require(letters.receive(0, "a").text == "first", "a");
      const rpc::Values b = letters.receive(0, "b");
      require(b.text == "later" && b.tensors.at(0).equal(at::full({2}, 3.0)), "b");
    }
    letters.shutdown();
  });
  EXPECT_EQ(outcome.message, "");
}

// The stage that is waited for is there, and does not send.
TEST(Letters, NameAStageThatSendsNothing) {
  const auto outcome = in_ranks(2, [](World& world) {
    Letters letters(world.ranks(), std::chrono::seconds(3));
    if (!world.ranks().is_first()) {
      require(world.ranks().store().get("told", std::chrono::minutes(2)).has_value(), "told");
      return;
    }
    std::string told;
    try {
      letters.receive(1, "gradient 7");
    } catch (const rpc::WorkerLost& error) {
      told = error.what();
    }
    world.ranks().store().set("told", "yes");
    require(told.starts_with("gradient 7 has not come in 3 s from stage1 (rank 1): timeout"), told);
  });
  EXPECT_EQ(outcome.message, "");
}

}  // namespace
}  // namespace phalanx::pipeline
