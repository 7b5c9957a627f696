// SPDX-License-Identifier: Apache-2.0
// Ranks that call other collectives than each other, which Gloo finds in a thread of its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "tests/tensors.h"
#include "trainer/launch/launchers/local_launcher/local_launcher.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/plan/run_plan.h"
#include "trainer/ranks/failures/gloo_error.h"
#include "trainer/ranks/failures/unlike_passes.h"
#include "trainer/ranks/ranks.h"
#include "trainer/run/run_in_ranks.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(UnlikeCollectives, AreToldByGlooByTheSizeOfTheirData) {
  EXPECT_TRUE(is_gloo_mismatch(std::runtime_error(
      "[enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:456] "
      "op.preamble.length <= op.nbytes. 1000 vs 8. Received data size doesn't match")));
  EXPECT_FALSE(is_gloo_mismatch(std::runtime_error("Connection closed by peer")));
}

// As where a rank of two alone skips its step, beside one in the usual step in DDP.
TEST(UnlikeCollectives, EndTheRunWithWhatEachRankWasDoing) {
  LocalLauncher launcher({.processes = 2});
  const RankOutcome outcome = outcome_of_ranks(RunPlan(), launcher, [](World& world) {
    const Ranks& ranks = world.ranks();
    const bool skips = ranks.is_first();
    ranks.set_activity("step 3, " + (skips ? activity_before("skips") : "backward"));
    ranks.all_reduce(tensors::full({skips ? 4 : 1000}, 1.0));
    return 0;
  });
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.message,
              AllOf(HasSubstr("the ranks run other passes in step 3"),
                    HasSubstr("step 3, before it skips"), HasSubstr("step 3, backward")));
}

// A custom program may set no activity.
TEST(UnlikeCollectives, EndTheRunAlsoWhereTheRanksSayNothing) {
  LocalLauncher launcher({.processes = 2});
  const RankOutcome outcome = outcome_of_ranks(RunPlan(), launcher, [](World& world) {
    const Ranks& ranks = world.ranks();
    ranks.set_activity("");
    ranks.all_reduce(tensors::full({ranks.is_first() ? 4 : 1000}, 1.0));
    return 0;
  });
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.message, HasSubstr("a collective of 2 ranks failed: the ranks call other"));
}

}  // namespace
}  // namespace phalanx
