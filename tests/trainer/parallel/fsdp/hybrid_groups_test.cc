// SPDX-License-Identifier: Apache-2.0
// Who shards a model together where the ranks of a host are not consecutive.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "tests/trainer/parallel/fsdp/models.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/simulated/fake_ranks.h"

namespace phalanx::fsdp::testing {
namespace {

using ::testing::UnorderedElementsAre;
using Members = std::vector<int64_t>;

constexpr std::array<int64_t, 3> kWidths{8, 13, 7};
constexpr int64_t kNoneFrozen = -1;

/// The groups of so many ranks that the engines of all ranks have made.
std::vector<Members> groups_of(const std::vector<int64_t>& hosts, size_t size) {
  GroupRoster roster;
  for (int64_t rank = 0; rank < std::ssize(hosts); ++rank) {
    const auto log = std::make_shared<CollectiveLog>();
    const Ranks ranks = fake_ranks(rank, hosts, log);
    Stack stack(kWidths, kNoneFrozen);
    const FullyShardedDataParallel fsdp(stack, ranks, ShardingStrategy::hybrid_shard, {});
    roster.add(rank, *log);
  }
  std::vector<Members> found;
  for (const auto& [name, members] : roster.members()) {
    if (members.size() == size) found.push_back(members);
  }
  return found;
}

// As `mpirun --map-by node` deals them.
TEST(HybridGroups, AreTheRanksOfAHost) {
  EXPECT_THAT(groups_of({0, 1, 0, 1, 0, 1}, 3),
              UnorderedElementsAre(Members{0, 2, 4}, Members{1, 3, 5}));
  EXPECT_THAT(groups_of({0, 0, 0, 1, 1, 1}, 3),
              UnorderedElementsAre(Members{0, 1, 2}, Members{3, 4, 5}));
}

}  // namespace
}  // namespace phalanx::fsdp::testing
