// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/divide_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Nodes = std::vector<std::optional<int64_t>>;

/// Equal sockets, NUMA nodes, caches and cores, the units of a core beside each other.
ProcessingUnits host(int64_t packages, int64_t nodes, int64_t caches, int64_t cores,
                     int64_t threads = 1) {
  ProcessingUnits units;
  const int64_t count = packages * nodes * caches * cores * threads;
  for (int64_t index = 0; index < count; ++index) {
    const int64_t core = index / threads;
    const int64_t cache = core / cores;
    const int64_t node = cache / caches;
    units.push_back(
        {.index = index, .core = core, .cache = cache, .node = node, .package = node / nodes});
  }
  return units;
}

Nodes without_gpus(size_t ranks) { return Nodes(ranks); }

// "0-3" of each rank.
std::vector<std::string> lists(const std::vector<RankCores>& all) {
  std::vector<std::string> texts;
  for (const RankCores& cores : all) {
    const std::string text = describe(cores.units);
    texts.push_back(text.substr(0, text.find(':')));
  }
  return texts;
}

std::vector<std::string> divided(const ProcessingUnits& units, NumaBinding binding,
                                 const Nodes& gpus) {
  return lists(divide_cores(units, binding, gpus));
}

std::string error_of(const ProcessingUnits& units, NumaBinding binding, const Nodes& gpus) {
  try {
    divide_cores(units, binding, gpus);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(DivideCores, FollowsTheGpus) {
  const ProcessingUnits units = host(2, 2, 2, 2);  // 16 cores, 4 nodes of 4
  const Nodes gpus{0, 3, 3};
  EXPECT_THAT(divided(units, NumaBinding::none, gpus), ElementsAre("0-15", "0-15", "0-15"));
  EXPECT_THAT(divided(units, NumaBinding::node, gpus), ElementsAre("0-3", "12-15", "12-15"));
  EXPECT_THAT(divided(units, NumaBinding::automatic, gpus), ElementsAre("0-3", "12-15", "12-15"));
  EXPECT_THAT(divided(units, NumaBinding::socket, gpus), ElementsAre("0-7", "8-15", "8-15"));
  EXPECT_THAT(divided(units, NumaBinding::exclusive, gpus), ElementsAre("0-3", "12-13", "14-15"));
  EXPECT_THAT(divided(units, NumaBinding::core_complex, gpus),
              ElementsAre("0-1", "12-13", "14-15"));
}

TEST(DivideCores, CountsTheRanksOnTheSameUnits) {
  const auto all = divide_cores(host(2, 1, 1, 4), NumaBinding::node, Nodes{0, 1, 1});
  EXPECT_EQ(all[0].ranks, 1);
  EXPECT_EQ(all[1].ranks, 2);
  EXPECT_EQ(all[2].ranks, 2);
  EXPECT_TRUE(all[0].is_bound);
  EXPECT_FALSE(divide_cores(host(1, 1, 1, 4), NumaBinding::node, Nodes{0}).front().is_bound);
}

TEST(DivideCores, SpreadsRanksWithoutGpusOverTheNodes) {
  const ProcessingUnits units = host(2, 1, 1, 4);
  EXPECT_THAT(divided(units, NumaBinding::node, without_gpus(4)),
              ElementsAre("0-3", "0-3", "4-7", "4-7"));
  EXPECT_THAT(divided(units, NumaBinding::exclusive, without_gpus(4)),
              ElementsAre("0-1", "2-3", "4-5", "6-7"));
}

TEST(DivideCores, AutomaticallyCostsNoRankItsShare) {
  const ProcessingUnits two_sockets = host(2, 2, 1, 2);  // 8 cores, 4 nodes
  const auto automatic = [&](size_t ranks) {
    return divided(two_sockets, NumaBinding::automatic, without_gpus(ranks));
  };
  EXPECT_THAT(automatic(1), ElementsAre("0-7"));
  EXPECT_THAT(automatic(2), ElementsAre("0-3", "4-7"));  // sockets
  EXPECT_THAT(automatic(3), ElementsAre("0-7", "0-7", "0-7"));
  EXPECT_THAT(automatic(4), ElementsAre("0-1", "2-3", "4-5", "6-7"));  // nodes
  EXPECT_THAT(divided(host(1, 1, 4, 2), NumaBinding::automatic, without_gpus(4)),
              testing::Each("0-7"));
}

TEST(DivideCores, KeepsHardwareThreadsOfACoreTogether) {
  EXPECT_THAT(divided(host(1, 1, 1, 3, 2), NumaBinding::exclusive, without_gpus(2)),
              ElementsAre("0-3", "4-5"));
}

TEST(DivideCores, TakesWhatTheLauncherAllows) {
  ProcessingUnits units = host(2, 1, 2, 2);
  std::erase_if(units, [](const ProcessingUnit& unit) { return unit.index < 3; });  // 3 to 7
  EXPECT_THAT(divided(units, NumaBinding::exclusive, Nodes{1, 1}), ElementsAre("4-5", "6-7"));
  EXPECT_THAT(divided(units, NumaBinding::core_complex, Nodes{0, 0}), ElementsAre("3", "3"));
  std::erase_if(units, [](const ProcessingUnit& unit) { return unit.node == 0; });
  EXPECT_THAT(divided(units, NumaBinding::automatic, Nodes{0}), ElementsAre("4-7"));
  EXPECT_THAT(error_of(units, NumaBinding::node, Nodes{0}),
              HasSubstr("GPU is on NUMA node 0, but the launcher lets this rank use cores 4-7: 4 "
                        "cores of NUMA node 1 alone"));
}

TEST(DivideCores, RefusesMoreExclusiveRanksThanCores) {
  EXPECT_THAT(
      error_of(host(1, 1, 1, 2, 2), NumaBinding::exclusive, without_gpus(3)),
      HasSubstr("3 ranks of this host share cores 0-3: 2 cores of NUMA node 0; start at most "
                "2 of them, or choose another binding"));
}

// Of random hosts: exclusive ranks have nothing in common, and nobody gets what was not there.
TEST(DivideCores, KeepsItsPromisesOnRandomHosts) {
  std::mt19937 random(7);
  const auto up_to = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(1, most)(random);
  };
  for (int round = 0; round < 300; ++round) {
    ProcessingUnits units = host(up_to(2), up_to(2), up_to(3), up_to(4), up_to(2));
    if (units.size() > 1)
      units.erase(units.begin() + up_to(static_cast<int64_t>(units.size())) - 1);
    const Nodes ranks = without_gpus(static_cast<size_t>(up_to(6)));
    for (const auto binding : {NumaBinding::automatic, NumaBinding::node, NumaBinding::socket,
                               NumaBinding::core_complex}) {
      for (const RankCores& cores : divide_cores(units, binding, ranks)) {
        ASSERT_FALSE(cores.units.empty());
        ASSERT_TRUE(std::ranges::includes(units, cores.units, {}, &ProcessingUnit::index,
                                          &ProcessingUnit::index));
      }
    }
    if (!error_of(units, NumaBinding::exclusive, ranks).empty()) continue;
    std::vector<int64_t> taken;
    for (const RankCores& cores : divide_cores(units, NumaBinding::exclusive, ranks)) {
      EXPECT_EQ(cores.ranks, 1);
      const auto of_rank = distinct(cores.units, &ProcessingUnit::core);
      taken.insert(taken.end(), of_rank.begin(), of_rank.end());
    }
    std::ranges::sort(taken);
    ASSERT_TRUE(std::ranges::adjacent_find(taken) == taken.end());
  }
}

}  // namespace
}  // namespace phalanx
