// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "trainer/parallel/fsdp/fsdp_options.h"
#include "trainer/simulated/collective_log.h"

/// What FSDP is to ask of the ranks of a world when it trains a stack of layers: each collective in
/// its order, and bytes in closed form.
namespace phalanx::fsdp::testing {

inline constexpr int64_t kHost = 8;        // ranks
inline constexpr int64_t kFloatBytes = 4;  // of what the model is made of

/// Widths of a stack of layers: small, as thousands of ranks have it, but such that shards differ
/// even over 4,096 ranks.
inline constexpr std::array<int64_t, 4> kWidths{8, 130, 137, 24};
inline constexpr int64_t kLayers = kWidths.size() - 1;
inline constexpr int64_t kFrozenLayer = 1;  // has a gain that is not trained

/// Elements of the tensors that are gathered together; only trained ones are reduced.
struct Flat {
  std::vector<int64_t> tensors;
  bool is_trained = true;

  /// What a rank keeps: each tensor at a multiple of four, the shards too.
  int64_t shard_bytes(int64_t shards) const {
    int64_t end = 0;
    for (const int64_t size : tensors) end = (end + 3) / 4 * 4 + size;
    return (end + 4 * shards - 1) / (4 * shards) * 4 * kFloatBytes;
  }
};

/// The stack's layers, and the root at the end.
std::vector<std::vector<Flat>> flats_of_stack();

/// One way to train.
struct Way {
  int64_t world_size = 0;
  ShardingStrategy strategy = ShardingStrategy::full_shard;
  FsdpOptions options;
  std::vector<bool> synchronize{true};  ///< One pass each.
  int64_t every = 1;                    ///< Each such rank is tried, and the corners.

  int64_t shards() const {
    if (strategy == ShardingStrategy::no_shard) return 1;
    if (strategy == ShardingStrategy::full_shard || strategy == ShardingStrategy::shard_grad_op) {
      return world_size;
    }
    return options.shard_group_size.value_or(kHost);
  }
  int64_t replicas() const { return world_size / shards(); }
  bool gives_up_after_forward() const {
    return strategy == ShardingStrategy::full_shard || strategy == ShardingStrategy::hybrid_shard;
  }
  /// Ranks that keep a unit whole together until its backward pass.
  int64_t kept_by() const {
    return options.reshard_after_forward ? std::get<int64_t>(*options.reshard_after_forward) : 1;
  }
};

std::string to_string(const Way& way);

/// Groups of a rank: all ranks, those that share a copy of the model with it, those that hold its
/// part of other copies, and those that keep a unit whole with it until its backward pass.
enum class Role { world, shard, replicate, neighbours };

/// The ranks of a rank's group, in its order.
std::vector<int64_t> members(const Way& way, Role role, int64_t rank);

/// Every rank makes first the groups that share a copy, then those that hold the same part, then
/// those of neighbours; a group of all ranks is the world itself.
std::string group_name(const Way& way, Role role, int64_t rank);

/// A collective that a rank asks for.
struct Asked {
  Role role;
  CollectiveKind kind;
  int64_t input_bytes;
  int64_t output_bytes;
  bool operator==(const Asked&) const = default;
};

/// What docs/fsdp.md says under "The order of communication", of the stack.
std::vector<Asked> asked_in_theory(const Way& way);

/// Bytes of a step with one pass, by what they are for.
struct Traffic {
  int64_t gathered = 0;
  int64_t scattered = 0;
  int64_t averaged = 0;
};

/// In closed form: every unit is gathered for the forward pass, and where it is given up after it
/// for the backward; trained parameters are scattered once, and their shards averaged over copies.
Traffic traffic_in_theory(const Way& way);

}  // namespace phalanx::fsdp::testing
