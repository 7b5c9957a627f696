// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "trainer/parallel/fsdp/sharding_strategy.h"
#include "trainer/ranks/ranks.h"

namespace phalanx::fsdp {

/// The ranks that a model is sharded over, and those that hold copies of it.
struct Groups {
  Ranks world;
  Ranks shard;      ///< This rank's copy: what is gathered and scattered goes here.
  Ranks replicate;  ///< The same shard of other copies: gradients are averaged over them after.
  /// Neighbours of the shard group that together keep a unit whole between its forward and its
  /// backward pass (`reshard_after_forward: n`); a world of one where nobody does.
  Ranks post_forward;
  Mesh mesh;
};

/// Makes them, in one order on every rank: first those that share a copy, then those that hold the
/// same shard, then the neighbours, `post_forward` at a time (1: none are needed; else a divisor of
/// the mesh's shards).
Groups make_groups(const Ranks& world, const Mesh& mesh, int64_t post_forward);

/// Groups in which every rank keeps the whole.
Groups whole_groups(const Ranks& world);

}  // namespace phalanx::fsdp
