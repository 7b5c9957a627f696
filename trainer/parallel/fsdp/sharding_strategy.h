// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace phalanx {

/// How model states are sharded: torch.distributed.fsdp.ShardingStrategy, with its numbers.
enum class ShardingStrategy {
  full_shard = 1,
  shard_grad_op = 2,
  no_shard = 3,
  hybrid_shard = 4,
  hybrid_shard_zero2 = 5,
};

/// "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD" or "_HYBRID_SHARD_ZERO2".
std::string_view to_string(ShardingStrategy strategy);

/// Whether parameters are given up after the forward pass and gathered again for the backward.
bool reshards_after_forward(ShardingStrategy strategy);

namespace fsdp {

/// Whether it shards over groups of ranks, each with a copy.
bool is_hybrid(ShardingStrategy strategy);

/// What a number (> 0) of ranks can be divided by: from 1 to the number.
std::vector<int64_t> divisors(int64_t number);

/// The place of a rank among the ranks that share one copy of the model (its shard group:
/// consecutive ranks) and among those that hold the same shard of other copies (its replicate
/// group: equal places in each shard group).
struct Mesh {
  int64_t replicas = 1;       ///< Copies of the model; the mesh's first dimension.
  int64_t shards = 1;         ///< Ranks that share a copy; the second.
  int64_t replica_index = 0;  ///< Which copy this rank has a part of.
  int64_t shard_index = 0;    ///< Which part.

  int64_t world_size() const { return replicas * shards; }
  /// The rank that holds part `shard` of copy `replica`.
  int64_t rank_of(int64_t replica, int64_t shard) const { return replica * shards + shard; }
};

/// The mesh of a strategy as rank `rank` sees it. FULL_SHARD and SHARD_GRAD_OP shard over the whole
/// world, NO_SHARD over nobody, the hybrid ones over `shard_group_size` ranks, or over those of a
/// host. Throws UserError, naming what would fit, where that does not divide the world, and where
/// `shard_group_size` is given to a strategy that is not hybrid.
Mesh mesh_of(ShardingStrategy strategy, int64_t rank, int64_t world_size, int64_t local_world_size,
             std::optional<int64_t> shard_group_size);

}  // namespace fsdp
}  // namespace phalanx
