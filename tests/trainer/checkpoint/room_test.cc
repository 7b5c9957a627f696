// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/retention/room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/trainer/io/temporary_folder.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/base/user_error.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::ThrowsMessage;

void require_bytes_of_three_ranks(const Ranks& ranks) {
  // One tensor that all hold, one of which each holds a part, one of rank 1 alone.
  ShardedTensorView all = whole_tensor("all", tensors::zeros({5}));
  all.replicas = {0, 1, 2};
  ShardedTensorView part = whole_tensor("part", tensors::zeros({4}));
  part.shape = {12};
  part.begin = 4 * ranks.rank();
  part.end = part.begin + 4;
  part.replicas = {ranks.rank()};
  ShardedTensorView lone = whole_tensor("lone", tensors::zeros({2}, at::kLong));
  lone.replicas = {1};
  const uint64_t bytes = checkpoint_bytes(ranks, std::vector{all, part}, std::vector{lone});
  require(bytes == 20 + 48 + 16, std::to_string(bytes));
}

TEST(Room, BytesAreCountedOnceOverAllRanks) {
  EXPECT_EQ(in_ranks(3, [](World& world) { require_bytes_of_three_ranks(world.ranks()); }).message,
            "");
}

std::vector<int64_t> steps_to(int64_t last) {
  std::vector<int64_t> steps(static_cast<std::size_t>(last));
  std::iota(steps.begin(), steps.end(), 1);
  return steps;
}

TEST(Room, IsNeededForThoseThatStayAndOneMore) {
  const PlannedSaves unknown;
  EXPECT_EQ(checkpoints_to_come({.keep_last = 3}, {}, unknown), 4);
  EXPECT_EQ(checkpoints_to_come({.keep_last = 3}, steps_to(3), unknown), 1);
  EXPECT_EQ(checkpoints_to_come({.keep_last = 3}, steps_to(9), unknown), 1);
  EXPECT_EQ(
      checkpoints_to_come({.keep_last = 1, .keep_best = KeepBest{.k = 2}}, steps_to(1), unknown),
      3);
  EXPECT_EQ(checkpoints_to_come({.keep_last = std::nullopt}, steps_to(5), unknown), 1);
  // The one that it came from stays in the midst of newer ones.
  EXPECT_EQ(checkpoints_to_come({.keep_last = 1, .resumed_step = 100}, {{100}}, unknown), 2);
  EXPECT_EQ(checkpoints_to_come({.keep_last = 3, .resumed_step = 100}, {{98, 99, 100}}, unknown),
            2);
  // A short run saves no more than it does.
  EXPECT_EQ(checkpoints_to_come({.keep_last = 3}, {}, {.are_all = true}), 0);
  EXPECT_EQ(checkpoints_to_come({.keep_last = 3}, {}, {.last = 2, .are_all = true}), 2);
}

TEST(Room, IsNeededForAllThatNothingRemoves) {
  EXPECT_EQ(checkpoints_to_come({}, {}, {.last = 80, .every = 4}), 20);
  EXPECT_EQ(checkpoints_to_come({}, {{40}}, {.after = 40, .last = 82, .every = 4}), 11);
  EXPECT_EQ(checkpoints_to_come({.keep_last = 2, .keep_every_n_steps = 8}, {},
                                {.last = 80, .every = 4, .are_all = true}),
            12);
}

TEST(Room, IsNeededForAsManyAsAFieldCanName) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  EXPECT_GT(checkpoints_to_come({.keep_last = kLargest}, {}, {}), 1'000'000'000);
  EXPECT_GT(checkpoints_to_come({.keep_last = 3, .keep_best = KeepBest{.k = kLargest}}, {}, {}),
            1'000'000'000);
  // One a step at the most.
  EXPECT_EQ(checkpoints_to_come({.keep_last = kLargest}, {}, {.after = 4, .last = 10}), 6);
}

// What a run really has at a time beside what it found, at most.
int64_t added(std::vector<Retained> checkpoints, const Retention& retention,
              const PlannedSaves& saves, std::mt19937& random) {
  const auto found = static_cast<int64_t>(checkpoints.size());
  int64_t most = found;
  for (int64_t step = saves.after + 1; step <= saves.last; ++step) {
    if (step % saves.every != 0 && step != saves.last) continue;
    checkpoints.push_back({.step = step, .metric = static_cast<double>(random() % 5)});
    most = std::max(most, static_cast<int64_t>(checkpoints.size()));
    const std::vector<int64_t> gone = to_prune(checkpoints, retention);
    std::erase_if(checkpoints, [&](const Retained& checkpoint) {
      return std::ranges::find(gone, checkpoint.step) != gone.end();
    });
  }
  return most - found;
}

TEST(Room, IsNeededForWhatRandomSettingsReallyKeep) {
  std::mt19937 random(7);
  const auto up_to = [&](int64_t most) { return static_cast<int64_t>(random() % most) + 1; };
  for (int round = 0; round < 20'000; ++round) {
    Retention retention;
    if (random() % 4 != 0) retention.keep_last = up_to(6);
    if (random() % 2 == 0) retention.keep_every_n_steps = up_to(12);
    if (random() % 3 == 0) retention.keep_best = KeepBest{.k = up_to(3)};
    std::vector<Retained> found;
    for (int64_t step = 0; random() % 4 != 0;) found.push_back({.step = step += up_to(9)});
    const int64_t after = found.empty() ? 0 : found.back().step;
    if (after > 0) retention.resumed_step = after;
    const PlannedSaves saves{
        .after = after, .last = after + up_to(60), .every = up_to(9), .are_all = true};

    std::vector<int64_t> steps;
    for (const Retained& checkpoint : found) steps.push_back(checkpoint.step);
    const int64_t promised = checkpoints_to_come(retention, steps, saves);
    const int64_t real = added(found, retention, saves, random);
    const int64_t slack = !retention.keep_last
                              ? 0
                              : (retention.keep_every_n_steps ? 2 : 0) +
                                    (retention.keep_best ? retention.keep_best->k : 0) +
                                    (retention.resumed_step ? 1 : 0);
    const std::string settings = testing::PrintToString(steps) + ", keep_last " +
                                 testing::PrintToString(retention.keep_last) + ", every n " +
                                 testing::PrintToString(retention.keep_every_n_steps) +
                                 ", saves (" + testing::PrintToString(saves.after) + ", " +
                                 testing::PrintToString(saves.last) + "] by " +
                                 testing::PrintToString(saves.every);
    ASSERT_LE(real, promised) << settings;
    ASSERT_LE(promised, real + slack) << settings;
  }
}

TEST(Room, TooLittleIsToldWithNumbersAndWithWhatHelps) {
  const TemporaryFolder folder;
  const uint64_t free = std::filesystem::space(folder.path()).available;
  require_room(folder.path(), {}, 4, 1000);
  require_room(folder.path(), {}, 0, std::numeric_limits<uint64_t>::max());
  const auto refusal = [&](const Retention& retention) {
    return [&folder, retention, free] { require_room(folder.path(), retention, 4, free / 2); };
  };
  EXPECT_THAT(refusal({}), ThrowsMessage<UserError>(AllOf(HasSubstr("4 more checkpoints of"),
                                                          HasSubstr("set checkpoint.keep_last"))));
  EXPECT_THAT(refusal({.keep_last = 3, .keep_every_n_steps = 5}),
              ThrowsMessage<UserError>(HasSubstr("raise checkpoint.keep_every_n_steps, keep fewer "
                                                 "(checkpoint.keep_last, now 3), or begin")));
  EXPECT_THAT(refusal({.keep_last = 3, .keep_best = KeepBest{.k = 5}}),
              ThrowsMessage<UserError>(HasSubstr(
                  "keep fewer (checkpoint.keep_last, now 3; checkpoint.keep_best.k, now 5)")));
  EXPECT_THAT(refusal({.keep_last = 1}),
              ThrowsMessage<UserError>(HasSubstr("choose another exp_dir, or begin")));
  // A run that goes on all the same has set that.
  EXPECT_THAT(
      [&] { require_room(folder.path(), {.keep_last = 1}, 4, free / 2, WithoutRoom::goes_on); },
      ThrowsMessage<UserError>(EndsWith("free some space, choose another exp_dir")));
  EXPECT_THAT([&] { require_room(folder.path(), {}, 2, std::numeric_limits<uint64_t>::max()); },
              ThrowsMessage<UserError>(HasSubstr("free some space")));
}

TEST(Room, AFolderThatCannotBeAskedIsTheUsersToMend) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { require_room(folder.path() / "gone", {}, 1, 1); },
              ThrowsMessage<UserError>(HasSubstr("cannot be kept in")));
}

TEST(Room, AFolderThatNotAllSeeIsRefusedOnAll) {
  const TemporaryFolder shared;
  const TemporaryFolder other;
  const RankOutcome outcome = in_ranks(2, [&](World& world) {
    const Ranks& ranks = world.ranks();
    require_shared(ranks, shared.path());
    // Where rank 1's host has another disk at that path, what rank 0 writes is not there.
    std::filesystem::current_path(ranks.is_first() ? shared.path() : other.path());
    std::string told = "nothing";
    try {
      require_shared(ranks, ".");
    } catch (const UserError& error) {
      told = error.what();
    }
    require(told.find("is not seen by rank 1 on ") != std::string::npos, told);
  });
  EXPECT_EQ(outcome.message, "");
  EXPECT_TRUE(std::filesystem::is_empty(shared.path()));
  EXPECT_TRUE(std::filesystem::is_empty(other.path()));
}

}  // namespace
}  // namespace phalanx
