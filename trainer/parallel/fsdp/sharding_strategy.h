// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
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

/// Whether it shards over groups of ranks, each with a copy.
bool is_hybrid(ShardingStrategy strategy);

namespace fsdp {

/// What a number (> 0) of ranks can be divided by: from 1 to the number.
std::vector<int64_t> divisors(int64_t number);

/// The coordinates of a rank among the ranks that share one copy of the model (its shard group) and
/// among those that hold the same shard of other copies (its replicate group).
struct Mesh {
  int64_t replicas = 1;        ///< Copies of the model; the mesh's first dimension.
  int64_t shards = 1;          ///< Ranks that share a copy; the second.
  int64_t replica_index = 0;   ///< Which copy this rank has a part of.
  int64_t shard_index = 0;     ///< Which part.
  std::vector<int64_t> ranks;  ///< Those of the first copy, of the next, ...; empty: 0, 1, 2, ...

  int64_t world_size() const { return replicas * shards; }
  /// The rank that holds part `shard` of copy `replica`.
  int64_t rank_of(int64_t replica, int64_t shard) const {
    const int64_t index = replica * shards + shard;
    return ranks.empty() ? index : ranks[static_cast<std::size_t>(index)];
  }
};

/// The mesh of a strategy as rank `rank` sees it, of a world with these hosts: a number for that of
/// each rank. FULL_SHARD and SHARD_GRAD_OP shard over the whole world, NO_SHARD over nobody, the
/// hybrid ones over the ranks of a host, or over `shard_group_size` ranks: consecutive ones in the
/// order of hosts, and of ranks on each, so that a group spans no more hosts than it must. Throws
/// UserError, naming what would fit, where groups would not be of one size, and where
/// `shard_group_size` is given to a strategy that is not hybrid.
Mesh mesh_of(ShardingStrategy strategy, int64_t rank, std::span<const int64_t> hosts,
             std::optional<int64_t> shard_group_size);

}  // namespace fsdp
}  // namespace phalanx
