// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/sharding_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/parallel/fsdp/fsdp_options.h"

namespace phalanx::fsdp {
namespace {

using enum ShardingStrategy;

/// Hosts of `local` ranks each, one after the other; the last may have fewer.
std::vector<int64_t> filled_hosts(int64_t world, int64_t local) {
  std::vector<int64_t> hosts;
  for (int64_t rank = 0; rank < world; ++rank) hosts.push_back(rank / local);
  return hosts;
}

Mesh mesh(ShardingStrategy strategy, int64_t rank, int64_t world, int64_t local,
          std::optional<int64_t> size = std::nullopt) {
  return mesh_of(strategy, rank, filled_hosts(world, local), size);
}

TEST(MeshOf, ShardsOverTheWorldOrNobody) {
  for (const auto strategy : {full_shard, shard_grad_op}) {
    const Mesh found = mesh(strategy, 5, 8, 4);
    EXPECT_EQ(found.shards, 8);
    EXPECT_EQ(found.replicas, 1);
    EXPECT_EQ(found.shard_index, 5);
  }
  const Mesh found = mesh(no_shard, 5, 8, 4);
  EXPECT_EQ(found.shards, 1);
  EXPECT_EQ(found.replica_index, 5);
}

// ml's HYBRID_SHARD made groups of one rank by default, and sharded nothing.
TEST(MeshOf, HybridShardsOverAHost) {
  for (const auto strategy : {hybrid_shard, hybrid_shard_zero2}) {
    const Mesh found = mesh(strategy, 6, 8, 4);
    EXPECT_EQ(found.shards, 4);
    EXPECT_EQ(found.replicas, 2);
    EXPECT_EQ(found.replica_index, 1);
    EXPECT_EQ(found.shard_index, 2);
    EXPECT_EQ(found.rank_of(1, 2), 6);
    EXPECT_EQ(mesh(strategy, 0, 2, 2).shards, 2);
  }
}

TEST(MeshOf, HybridTakesAnyDivisor) {
  for (int64_t world = 1; world <= 64; ++world) {
    for (int64_t size = 1; size <= world; ++size) {
      if (world % size != 0) continue;
      std::map<std::pair<int64_t, int64_t>, int64_t> ranks;
      for (int64_t rank = 0; rank < world; ++rank) {
        const Mesh found = mesh(hybrid_shard, rank, world, 3, size);
        EXPECT_EQ(found.shards, size);
        EXPECT_EQ(found.rank_of(found.replica_index, found.shard_index), rank);
        ranks[{found.replica_index, found.shard_index}] = rank;
      }
      EXPECT_EQ(ranks.size(), static_cast<size_t>(world));
    }
  }
}

// As `mpirun --map-by node` places them.
TEST(MeshOf, HybridShardsOverAHostWhateverItsRanksAre) {
  const std::vector<int64_t> hosts{0, 1, 0, 1, 0, 1};
  const Mesh found = mesh_of(hybrid_shard, 3, hosts, std::nullopt);
  EXPECT_EQ(found.shards, 3);
  EXPECT_EQ(found.replica_index, 1);
  EXPECT_EQ(found.shard_index, 1);
  EXPECT_EQ(found.ranks, (std::vector<int64_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(mesh_of(full_shard, 3, hosts, std::nullopt).shard_index, 3);
}

/// Hosts with so many ranks each, which are dealt by chance; their numbers are any.
std::vector<int64_t> random_hosts(std::mt19937& random, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> hosts;
  for (size_t host = 0; host < sizes.size(); ++host) {
    hosts.insert(hosts.end(), static_cast<size_t>(sizes[host]), static_cast<int64_t>(host) * 7 + 3);
  }
  std::ranges::shuffle(hosts, random);
  return hosts;
}

/// What each rank knows of one world's mesh.
std::vector<Mesh> meshes(const std::vector<int64_t>& hosts, std::optional<int64_t> size) {
  std::vector<Mesh> found;
  for (int64_t rank = 0; rank < std::ssize(hosts); ++rank) {
    found.push_back(mesh_of(hybrid_shard, rank, hosts, size));
  }
  return found;
}

/// The ranks of a copy in the order of their parts.
std::vector<int64_t> copy_of(const Mesh& mesh, int64_t replica) {
  std::vector<int64_t> ranks;
  for (int64_t s = 0; s < mesh.shards; ++s) ranks.push_back(mesh.rank_of(replica, s));
  return ranks;
}

std::set<int64_t> hosts_of_copy(const Mesh& mesh, int64_t replica,
                                const std::vector<int64_t>& hosts) {
  std::set<int64_t> found;
  for (const int64_t rank : copy_of(mesh, replica)) found.insert(hosts[static_cast<size_t>(rank)]);
  return found;
}

// All ranks know one mesh, which has each of them once, where it says that it is.
void expect_one_mesh(const std::vector<Mesh>& found) {
  std::set<int64_t> ranks;
  for (size_t rank = 0; rank < found.size(); ++rank) {
    const Mesh& mesh = found[rank];
    EXPECT_EQ(mesh.world_size(), std::ssize(found));
    EXPECT_EQ(mesh.ranks, found[0].ranks);
    EXPECT_EQ(mesh.rank_of(mesh.replica_index, mesh.shard_index), static_cast<int64_t>(rank));
    ranks.insert(mesh.rank_of(mesh.replica_index, mesh.shard_index));
  }
  EXPECT_EQ(ranks.size(), found.size());
}

constexpr int kPlacements = 500;

TEST(MeshOf, AnyPlacementOfEqualHostsShardsWithinThem) {
  std::mt19937 random(7);
  for (int i = 0; i < kPlacements; ++i) {
    const auto count = std::uniform_int_distribution<size_t>(1, 6)(random);
    const auto size = std::uniform_int_distribution<int64_t>(1, 8)(random);
    const auto hosts = random_hosts(random, std::vector<int64_t>(count, size));
    const std::vector<Mesh> found = meshes(hosts, std::nullopt);
    expect_one_mesh(found);
    for (int64_t replica = 0; replica < found[0].replicas; ++replica) {
      const std::vector<int64_t> copy = copy_of(found[0], replica);
      EXPECT_EQ(std::ssize(copy), size);
      EXPECT_EQ(hosts_of_copy(found[0], replica, hosts).size(), 1U);
      EXPECT_TRUE(std::ranges::is_sorted(copy));
    }
  }
}

TEST(MeshOf, AnyPlacementOfUnequalHostsIsRefusedOnAllRanksAlike) {
  std::mt19937 random(8);
  for (int i = 0; i < kPlacements; ++i) {
    std::vector<int64_t> sizes(std::uniform_int_distribution<size_t>(2, 6)(random));
    for (int64_t& size : sizes) size = std::uniform_int_distribution<int64_t>(1, 4)(random);
    if (std::ranges::count(sizes, sizes[0]) == std::ssize(sizes)) ++sizes[0];
    const auto hosts = random_hosts(random, sizes);
    for (int64_t rank = 0; rank < std::ssize(hosts); ++rank) {
      EXPECT_THROW(mesh_of(hybrid_shard, rank, hosts, std::nullopt), UserError);
    }
  }
}

TEST(MeshOf, GroupsOfAGivenSizeStayWithinHostsWhereTheyFit) {
  std::mt19937 random(9);
  for (int i = 0; i < kPlacements; ++i) {
    const auto group = std::uniform_int_distribution<int64_t>(1, 4)(random);
    std::vector<int64_t> sizes(std::uniform_int_distribution<size_t>(1, 5)(random));
    for (int64_t& size : sizes) size = group * std::uniform_int_distribution<int64_t>(1, 3)(random);
    const auto hosts = random_hosts(random, sizes);
    const std::vector<Mesh> found = meshes(hosts, group);
    expect_one_mesh(found);
    for (int64_t replica = 0; replica < found[0].replicas; ++replica) {
      EXPECT_EQ(hosts_of_copy(found[0], replica, hosts).size(), 1U);
    }
  }
}

std::string refusal(ShardingStrategy strategy, int64_t world, int64_t local,
                    std::optional<int64_t> size) {
  try {
    mesh(strategy, 0, world, local, size);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(MeshOf, NamesWhatWouldFit) {
  EXPECT_EQ(refusal(hybrid_shard, 12, 12, 5),
            "parallel.fsdp.shard_group_size is 5, which does not divide the 12 ranks: it can be "
            "1, 2, 3, 4, 6, 12");
  EXPECT_EQ(
      refusal(hybrid_shard_zero2, 6, 4, std::nullopt),
      "the hosts have unequal numbers of the 6 ranks (2, 4), so that groups of a host's ranks "
      "do not come out even: start as many ranks on each host, or set "
      "parallel.fsdp.shard_group_size to one of 1, 2, 3, 6");
  EXPECT_THAT(refusal(full_shard, 4, 4, 2), ::testing::HasSubstr("FULL_SHARD shards over all"));
  EXPECT_THAT(refusal(no_shard, 4, 4, 2), ::testing::HasSubstr("NO_SHARD shards over nobody"));
}

/// What a world of so many ranks is warned of, with so many on a host.
std::string warning(ShardingStrategy strategy, int64_t world, int64_t local,
                    const FsdpOptions& options = {}) {
  return unsharded_warning(strategy, options,
                           phalanx::mesh_of(strategy, options, 0, filled_hosts(world, local)));
}

TEST(UnshardedWarning, SaysWhatToSet) {
  EXPECT_EQ(warning(hybrid_shard, 4, 1),
            "HYBRID_SHARD shards nothing here: a group is the ranks of a host, which has one, so "
            "that each of the 4 ranks keeps the whole model. Set "
            "parallel.sharding_strategy=FULL_SHARD to shard it over all ranks, or "
            "parallel.fsdp.shard_group_size to the number of ranks that share a copy: 2, 4");
  FsdpOptions options;
  options.shard_group_size = 1;
  EXPECT_THAT(warning(hybrid_shard_zero2, 4, 4, options),
              ::testing::HasSubstr("parallel.fsdp.shard_group_size is 1"));
  options = {};
  options.mesh.replicate = 4;
  EXPECT_THAT(warning(hybrid_shard, 4, 4, options),
              ::testing::HasSubstr("parallel.fsdp.mesh.shard is 1"));
}

TEST(UnshardedWarning, IsNotOfWhatShardsOrIsToldNotTo) {
  for (const auto strategy : {full_shard, shard_grad_op, no_shard}) {
    EXPECT_EQ(warning(strategy, 4, 1), "");
  }
  EXPECT_EQ(warning(hybrid_shard, 4, 2), "");
  EXPECT_EQ(warning(hybrid_shard, 4, 4), "");
  EXPECT_EQ(warning(hybrid_shard, 1, 1), "");
}

}  // namespace
}  // namespace phalanx::fsdp
