// SPDX-License-Identifier: Apache-2.0
// Ranks that meet in a file (file:// of environment_at).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/trainer/io/temporary_folder.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/base/user_error.h"
#include "trainer/launch/launchers/local_launcher/local_launcher.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/ranks/collectives/numbers.h"
#include "trainer/ranks/environment/init_method.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::filesystem::path& file, int64_t rank) {
  try {
    init_from_env(environment_at("file://" + file.string(), rank, 2),
                  {.join_timeout = std::chrono::milliseconds(300)});
  } catch (const UserError& error) {
    return error.what();
  }
  return "joined";
}

TEST(FileMeeting, RanksMeetAndRemoveTheFile) {
  const TemporaryFolder folder;
  const auto file = folder / "meeting";
  const RankOutcome outcome = LocalLauncher({.processes = 3}).launch([&](const Environment& place) {
    World world = init_from_env(environment_at("file://" + file.string(), place.rank, 3));
    const Ranks& ranks = world.ranks();
    const auto all = all_gather_numbers(ranks, std::array<int64_t, 1>{ranks.rank()});
    const bool is_right = all == std::vector<int64_t>{0, 1, 2} &&
                          ranks.local_rank() == place.rank && ranks.local_world_size() == 3 &&
                          std::filesystem::exists(file);
    const auto group = ranks.subgroup(std::array<int64_t, 2>{2, 0});
    const bool has_group = place.rank == 1 || group->world_size() == 2;
    world.close();
    if (is_right && has_group) return RankOutcome{};
    return RankOutcome{.exit_code = 1, .message = "they have not met"};
  });
  EXPECT_EQ(outcome, RankOutcome{});
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(FileMeeting, NamesTheRanksThatAreMissing) {
  const TemporaryFolder folder;
  const auto file = folder / "meeting";
  EXPECT_THAT(error_of(file, 0),
              HasSubstr("these of 2 ranks have not come to " + file.string() +
                        ": 1. Are they started, and with the same file and world size?"));
  EXPECT_THAT(error_of(file, 0), HasSubstr("rank 0 has come there before: the file is left"));
}

TEST(FileMeeting, SaysThatThereIsNoFolder) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of(folder / "none" / "meeting", 1),
              HasSubstr("there is no folder " + (folder / "none").string()));
}

}  // namespace
}  // namespace phalanx
