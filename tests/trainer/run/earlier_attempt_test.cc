// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/earlier_attempt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <optional>

#include "tests/trainer/commands/command_fixture.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/base/user_error.h"
#include "trainer/ranks/collectives/at_length.h"
#include "trainer/run/run_lock.h"

namespace phalanx::tiny {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class EarlierAttemptTest : public CommandTest {
 protected:
  EarlierAttemptTest() {
    std::filesystem::create_directory("run");
    write("run/starts.jsonl", R"({"job": "slurm 7", "job_restarts": 0})"
                              "\n");
  }
};

const BatchJob kRequeued{.name = "slurm 7", .restarts = 1};

// An attempt whose other ranks are cut off ends `timeout` later. When Slurm starts the job again,
// it may have all of that before it.
TEST_F(EarlierAttemptTest, IsWaitedForUntilItMustHaveSeenThatItsPeersAreGone) {
  for (const std::chrono::milliseconds timeout : {1s, 600s, 3000s, 7200s}) {
    EXPECT_GE(patience_with_earlier_attempt(timeout), timeout + timeout / 4);
  }
}

TEST_F(EarlierAttemptTest, IsRefusedWhereItGoesOnForLonger) {
  const RunLock earlier("run");
  int waits = 0;
  EXPECT_THAT([&] { await_earlier_attempt("run", kRequeued, 200ms, [&] { ++waits; }); },
              ThrowsMessage<UserError>(HasSubstr("run is being trained by process")));
  EXPECT_GT(waits, 0);
  await_earlier_attempt("run", {.name = "slurm 7", .restarts = 0}, 0ms);
  await_earlier_attempt("run", {.name = "slurm 8", .restarts = 1}, 0ms);
}

// Rank 0 waits, and the other ranks for it, for longer than they wait for an operation.
TEST_F(EarlierAttemptTest, KeepsTheOtherRanksWaiting) {
  constexpr std::chrono::milliseconds kTimeout = 3s;
  const auto outcome =
      in_ranks(2,
               [&](World& world) {
                 std::optional<RunLock> earlier;
                 if (world.ranks().is_first()) earlier.emplace("run");
                 on_first_rank_at_length(world.ranks(), [&](const StillAtIt& still_at_it) {
                   const auto end = Clock::now() + kTimeout + kTimeout / 4;
                   const auto meanwhile = [&] {
                     still_at_it();
                     if (Clock::now() > end) earlier.reset();
                   };
                   await_earlier_attempt("run", kRequeued, kTimeout, meanwhile);
                 });
               },
               {.timeout = kTimeout});
  EXPECT_EQ(outcome, RankOutcome{});
}

}  // namespace
}  // namespace phalanx::tiny
