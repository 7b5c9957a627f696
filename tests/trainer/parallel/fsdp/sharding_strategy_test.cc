// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/sharding_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "trainer/base/user_error.h"
#include "trainer/parallel/fsdp/fsdp_options.h"

namespace phalanx::fsdp {
namespace {

using enum ShardingStrategy;

Mesh mesh(ShardingStrategy strategy, int64_t rank, int64_t world, int64_t local,
          std::optional<int64_t> size = std::nullopt) {
  return mesh_of(strategy, rank, world, local, size);
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
  EXPECT_THAT(refusal(hybrid_shard_zero2, 6, 4, std::nullopt),
              ::testing::HasSubstr("set parallel.fsdp.shard_group_size to one of 1, 2, 3, 6"));
  EXPECT_THAT(refusal(full_shard, 4, 4, 2), ::testing::HasSubstr("FULL_SHARD shards over all"));
  EXPECT_THAT(refusal(no_shard, 4, 4, 2), ::testing::HasSubstr("NO_SHARD shards over nobody"));
}

/// What a world of so many ranks is warned of, with so many on a host.
std::string warning(ShardingStrategy strategy, int64_t world, int64_t local,
                    const FsdpOptions& options = {}) {
  return unsharded_warning(strategy, options, phalanx::mesh_of(strategy, options, 0, world, local));
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
