// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/retention/room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "tests/trainer/io/temporary_folder.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/base/user_error.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

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

TEST(Room, IsNeededForThoseThatStayAndOneMore) {
  EXPECT_EQ(checkpoints_to_come({.keep_last = 3}, 0, std::nullopt), 4);
  EXPECT_EQ(checkpoints_to_come({.keep_last = 3}, 3, std::nullopt), 1);
  EXPECT_EQ(checkpoints_to_come({.keep_last = 3}, 9, std::nullopt), 1);
  EXPECT_EQ(checkpoints_to_come({.keep_last = 1, .keep_best = KeepBest{.k = 2}}, 1, std::nullopt),
            3);
  EXPECT_EQ(checkpoints_to_come({.keep_last = std::nullopt}, 5, std::nullopt), 1);
  // The one that it came from stays in the midst of newer ones.
  EXPECT_EQ(checkpoints_to_come({.keep_last = 1, .resumed_step = 100}, 1, std::nullopt), 2);
  EXPECT_EQ(checkpoints_to_come({.keep_last = 3, .resumed_step = 100}, 3, std::nullopt), 2);
  // A short run saves no more than it does.
  EXPECT_EQ(checkpoints_to_come({.keep_last = 3}, 0, 0), 0);
  EXPECT_EQ(checkpoints_to_come({.keep_last = 3}, 0, 2), 2);
}

TEST(Room, TooLittleIsToldWithNumbers) {
  const TemporaryFolder folder;
  const uint64_t free = std::filesystem::space(folder.path()).available;
  require_room(folder.path(), 4, 1000);
  require_room(folder.path(), 0, std::numeric_limits<uint64_t>::max());
  EXPECT_THAT([&] { require_room(folder.path(), 4, free / 2); },
              ThrowsMessage<UserError>(HasSubstr("4 more checkpoints of")));
  EXPECT_THAT([&] { require_room(folder.path(), 2, std::numeric_limits<uint64_t>::max()); },
              ThrowsMessage<UserError>(HasSubstr("free some space")));
}

TEST(Room, AFolderThatCannotBeAskedIsTheUsersToMend) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { require_room(folder.path() / "gone", 1, 1); },
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
