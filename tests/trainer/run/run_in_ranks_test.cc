// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/run_in_ranks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

#include "trainer/launch/launchers/local_launcher/local_launcher.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/plan/run_plan.h"

namespace phalanx {
namespace {

// As `generate` and `predict` do where lines were refused: their warning has said why.
TEST(RunInRanks, AnExitCodeThatAllRanksReturnIsTheRunsOwnWithoutAMessage) {
  LocalLauncher launcher({.processes = 2});
  const RankOutcome outcome = outcome_of_ranks(RunPlan(), launcher, [](World&) { return 1; });
  EXPECT_EQ(outcome, (RankOutcome{.exit_code = 1, .message = {}}));
  EXPECT_EQ(exit_code_or_throw(outcome), 1);
}

TEST(RunInRanks, AnExceptionWithoutAMessageIsTold) {
  // Two first: a process that forks ranks has a single thread.
  for (const int64_t processes : {2, 1}) {
    LocalLauncher launcher({.processes = processes});
    const RankOutcome outcome =
        outcome_of_ranks(RunPlan(), launcher, [](World&) -> int { throw std::runtime_error(""); });
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.message, "an exception without a message");
  }
}

}  // namespace
}  // namespace phalanx
