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

/// Ranks that count from 0, with GPUs on these nodes.
std::vector<RankCores> divide(const ProcessingUnits& units, NumaBinding binding,
                              const Nodes& gpus) {
  std::vector<RankGpu> ranks;
  for (const auto& node : gpus) ranks.push_back({.local_rank = std::ssize(ranks), .node = node});
  return divide_cores(units, binding, ranks);
}

/// A host with so many cores of each of these NUMA nodes, which are all of one socket each.
ProcessingUnits nodes_of(const std::vector<int64_t>& cores, const std::vector<int64_t>& packages) {
  ProcessingUnits units;
  for (size_t node = 0; node < cores.size(); ++node) {
    for (int64_t core = 0; core < cores[node]; ++core) {
      const int64_t index = std::ssize(units);
      units.push_back({.index = index,
                       .core = index,
                       .cache = static_cast<int64_t>(node),
                       .node = static_cast<int64_t>(node),
                       .package = packages[node]});
    }
  }
  return units;
}

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
  return lists(divide(units, binding, gpus));
}

std::string error_of(const ProcessingUnits& units, NumaBinding binding, const Nodes& gpus) {
  try {
    divide(units, binding, gpus);
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
  const auto all = divide(host(2, 1, 1, 4), NumaBinding::node, Nodes{0, 1, 1});
  EXPECT_EQ(all[0].ranks, 1);
  EXPECT_EQ(all[1].ranks, 2);
  EXPECT_EQ(all[2].ranks, 2);
  EXPECT_TRUE(all[0].is_bound);
  EXPECT_FALSE(divide(host(1, 1, 1, 4), NumaBinding::node, Nodes{0}).front().is_bound);
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
              HasSubstr("the GPU of local rank 0 is on NUMA node 0, but the launcher lets that "
                        "rank use cores 4-7: 4 cores of NUMA node 1 alone"));
}

TEST(DivideCores, NamesTheRankWhoseGpuIsElsewhere) {
  const std::vector<RankGpu> ranks{{.local_rank = 4, .node = 0}, {.local_rank = 6, .node = 1}};
  try {
    divide_cores(host(1, 1, 1, 4), NumaBinding::node, ranks);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the GPU of local rank 6 is on NUMA node 1"));
  }
}

TEST(DivideCores, AutomaticallyCountsCoresAndNotNodes) {
  const auto automatic = [](const ProcessingUnits& units, size_t ranks) {
    return divided(units, NumaBinding::automatic, without_gpus(ranks));
  };
  const ProcessingUnits uneven = nodes_of({12, 4}, {0, 1});
  EXPECT_THAT(automatic(uneven, 2), ElementsAre("0-15", "0-15"));
  EXPECT_THAT(automatic(uneven, 4), ElementsAre("0-11", "0-11", "0-11", "12-15"));
  const ProcessingUnits two_on_one_socket = nodes_of({2, 2, 4}, {0, 0, 1});
  EXPECT_THAT(automatic(two_on_one_socket, 2), ElementsAre("0-3", "4-7"));
  EXPECT_THAT(automatic(two_on_one_socket, 4), ElementsAre("0-1", "2-3", "4-7", "4-7"));
  EXPECT_THAT(automatic(nodes_of({4, 4, 4}, {0, 0, 1}), 2), testing::Each("0-11"));
}

TEST(DivideCores, AutomaticallyLeavesRanksUnboundWhereTheirGpusNodeHasTooFewCores) {
  const ProcessingUnits units = nodes_of({2, 6}, {0, 1});
  const auto automatic = [&](const Nodes& gpus) {
    return divided(units, NumaBinding::automatic, gpus);
  };
  EXPECT_THAT(automatic({0, 0, 1}), ElementsAre("0-1", "0-1", "2-7"));
  EXPECT_THAT(automatic({0, 0, 0}), testing::Each("0-7"));
}

TEST(DivideCores, RefusesMoreExclusiveRanksThanCores) {
  EXPECT_THAT(
      error_of(host(1, 1, 1, 2, 2), NumaBinding::exclusive, without_gpus(3)),
      HasSubstr("3 ranks of this host share cores 0-3: 2 cores of NUMA node 0; start at most "
                "2 of them, or choose another binding"));
}

/// Random hosts whose sockets and nodes differ in size, with some of their units.
class RandomHosts : public testing::Test {
 protected:
  int64_t up_to(int64_t most) { return std::uniform_int_distribution<int64_t>(1, most)(random_); }

  ProcessingUnits host() {
    ProcessingUnits units;
    const int64_t threads = up_to(2);
    int64_t node = 0, cache = 0, core = 0;
    for (int64_t package = 0, packages = up_to(3); package < packages; ++package) {
      for (const int64_t nodes = node + up_to(3); node < nodes; ++node) {
        for (const int64_t caches = cache + up_to(2); cache < caches; ++cache) {
          for (const int64_t cores = core + up_to(4); core < cores; ++core) {
            for (int64_t thread = 0; thread < threads; ++thread) {
              units.push_back({.index = std::ssize(units),
                               .core = core,
                               .cache = cache,
                               .node = node,
                               .package = package});
            }
          }
        }
      }
    }
    if (up_to(2) == 1) {
      const ProcessingUnit kept = units.front();
      std::erase_if(units,
                    [&](const ProcessingUnit& unit) { return unit != kept && up_to(4) == 1; });
    }
    return units;
  }

  std::mt19937 random_{7};
};

bool contains(const ProcessingUnits& units, const ProcessingUnits& part) {
  return std::ranges::includes(units, part, {}, &ProcessingUnit::index, &ProcessingUnit::index);
}

TEST_F(RandomHosts, KeepWhatIsExclusiveApart) {
  for (int round = 0; round < 300; ++round) {
    const ProcessingUnits units = host();
    const Nodes ranks = without_gpus(static_cast<size_t>(up_to(6)));
    for (const auto& [name, binding] : kNumaBindings) {
      if (!error_of(units, binding, ranks).empty()) continue;
      for (const RankCores& cores : divide(units, binding, ranks)) {
        ASSERT_FALSE(cores.units.empty()) << name;
        ASSERT_TRUE(contains(units, cores.units)) << name;
      }
    }
    if (!error_of(units, NumaBinding::exclusive, ranks).empty()) continue;
    std::vector<int64_t> taken;
    for (const RankCores& cores : divide(units, NumaBinding::exclusive, ranks)) {
      EXPECT_EQ(cores.ranks, 1);
      const auto of_rank = distinct(cores.units, &ProcessingUnit::core);
      taken.insert(taken.end(), of_rank.begin(), of_rank.end());
    }
    std::ranges::sort(taken);
    ASSERT_TRUE(std::ranges::adjacent_find(taken) == taken.end());
  }
}

// The promise of NumaBinding::automatic: each rank has its share, and every core a rank.
TEST_F(RandomHosts, AutomaticallyCostNoRankItsShare) {
  int bound = 0;
  for (int round = 0; round < 3000; ++round) {
    const ProcessingUnits units = host();
    const int64_t cores = count_cores(units);
    const int64_t ranks = up_to(12);
    const auto all =
        divide(units, NumaBinding::automatic, without_gpus(static_cast<size_t>(ranks)));
    ASSERT_EQ(std::ssize(all), ranks);
    std::vector<int64_t> used;
    for (const RankCores& each : all) {
      ASSERT_GE(count_cores(each.units) * ranks, cores * each.ranks)
          << describe(each.units) << " for " << each.ranks << " of " << ranks << " ranks";
      for (const ProcessingUnit& unit : each.units) used.push_back(unit.index);
      const bool is_one_part = distinct(each.units, &ProcessingUnit::node).size() == 1 ||
                               distinct(each.units, &ProcessingUnit::package).size() == 1;
      ASSERT_TRUE(is_one_part || !each.is_bound);
      bound += each.is_bound ? 1 : 0;
    }
    std::ranges::sort(used);
    used.erase(std::unique(used.begin(), used.end()), used.end());
    ASSERT_EQ(used.size(), units.size()) << "cores that no rank uses";
  }
  EXPECT_GT(bound, 800);
}

TEST_F(RandomHosts, AutomaticallyFollowGpusWithACoreForEachRank) {
  int bound = 0;
  for (int round = 0; round < 1000; ++round) {
    const ProcessingUnits units = host();
    const auto nodes = distinct(units, &ProcessingUnit::node);
    Nodes gpus;
    for (int64_t rank = 0, ranks = up_to(8); rank < ranks; ++rank) {
      gpus.emplace_back(up_to(std::ssize(nodes) + 1) - 1);
    }
    const auto all = divide(units, NumaBinding::automatic, gpus);
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (!all[rank].is_bound) continue;
      ++bound;
      ASSERT_EQ(distinct(all[rank].units, &ProcessingUnit::node),
                std::vector<int64_t>{*gpus[rank]});
      ASSERT_GE(count_cores(all[rank].units), all[rank].ranks);
    }
  }
  EXPECT_GT(bound, 300);
}

}  // namespace
}  // namespace phalanx
