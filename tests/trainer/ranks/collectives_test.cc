// SPDX-License-Identifier: Apache-2.0
// What is made of the ranks' operations.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/ranks/collectives/at_length.h"
#include "trainer/ranks/collectives/hosts.h"
#include "trainer/ranks/collectives/numbers.h"

namespace phalanx {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Numbers = std::vector<int64_t>;

TEST(Numbers, ReachAllRanks) {
  const auto outcome = in_ranks(3, [](World& world) {
    const Ranks& ranks = world.ranks();
    const int64_t rank = ranks.rank();
    require(broadcast_number(ranks, rank - 1) == -1, "of rank 0");
    require(broadcast_number(ranks, rank - 1, 2) == 1, "of rank 2");
    const std::array<int64_t, 2> own{rank, int64_t{1} << (40 + rank)};
    require(all_gather_numbers(ranks, own) ==
                Numbers{0, int64_t{1} << 40, 1, int64_t{1} << 41, 2, int64_t{1} << 42},
            "gathered");
    require(all_reduce_numbers(ranks, own, Reduction::maximum) == Numbers{2, int64_t{1} << 42},
            "the largest");
    require(all_reduce_numbers(ranks, own, Reduction::sum) == Numbers{3, int64_t{7} << 40}, "sums");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(Numbers, AreOnesOwnInAWorldOfOne) {
  const Ranks alone;
  const std::array<int64_t, 2> own{4, 5};
  EXPECT_EQ(broadcast_number(alone, 7), 7);
  EXPECT_EQ(all_gather_numbers(alone, own), (Numbers{4, 5}));
  EXPECT_EQ(all_reduce_numbers(alone, own, Reduction::sum), (Numbers{4, 5}));
}

TEST(Hosts, AreThoseOfTheGroupsRanks) {
  const auto outcome = in_ranks(
      4,
      [](World& world) {
        const auto hosts = hosts_of(world.ranks());
        require(Numbers(hosts.begin(), hosts.end()) == Numbers{0, 0, 1, 1}, "the world's");
        const auto some = world.ranks().subgroup(std::array<int64_t, 3>{3, 0, 2});
        if (!some) return;
        const auto theirs = hosts_of(*some);
        require(Numbers(theirs.begin(), theirs.end()) == Numbers{1, 0, 1}, "the group's");
      },
      {}, /*ranks_per_host=*/2);
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(AtLength, OthersWaitLongerThanForAnOperation) {
  constexpr auto kTimeout = 3s;
  const auto outcome =
      in_ranks(3,
               [&](World& world) {
                 int64_t done = 0;
                 on_first_rank_at_length(world.ranks(), [&](const StillAtIt& still_at_it) {
                   for (const auto end = Clock::now() + kTimeout * 3 / 2; Clock::now() < end;) {
                     still_at_it();
                     std::this_thread::yield();
                   }
                   done = 1;
                 });
                 require(broadcast_number(world.ranks(), done) == 1, "it is done when all go on");
               },
               {.timeout = kTimeout});
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(AtLength, AFailureOfTheFirstRankReachesAll) {
  const auto outcome = in_ranks(2, [](World& world) {
    world.ranks().set_activity("reading");
    try {
      on_first_rank_at_length(world.ranks(), [](const StillAtIt& still_at_it) {
        still_at_it();
        throw std::runtime_error("line 3 is none");
      });
    } catch (const CommunicationError& error) {
      require(!world.ranks().is_first(), "its own error is no CommunicationError");
      require(std::string(error.what()) == "rank 0 failed in reading: line 3 is none",
              error.what());
      throw;
    }
  });
  EXPECT_EQ(outcome.message, "rank 0: line 3 is none");
}

// What rank 0 does at length may fail to reach a store, and the others are still there to be told.
TEST(AtLength, ALostStoreIsNoLostHeartbeat) {
  const auto outcome = in_ranks(2, [](World& world) {
    world.ranks().set_activity("looking for an earlier attempt");
    try {
      on_first_rank_at_length(world.ranks(), [](const StillAtIt& still_at_it) {
        still_at_it();
        throw CommunicationError("the agent's store does not answer");
      });
    } catch (const CommunicationError& error) {
      const std::string expected = world.ranks().is_first()
                                       ? "the agent's store does not answer"
                                       : "rank 0 failed in looking for an earlier attempt: "
                                         "the agent's store does not answer";
      if (error.what() != expected) throw std::runtime_error(error.what());
      return;
    }
    throw std::runtime_error("it did not fail");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(AtLength, OneRankJustDoesIt) {
  int done = 0;
  on_first_rank_at_length(Ranks(), [&](const StillAtIt& still_at_it) {
    still_at_it();
    ++done;
  });
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace phalanx
