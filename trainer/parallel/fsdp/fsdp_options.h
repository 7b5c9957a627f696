// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "trainer/config/tree/forward.h"
#include "trainer/parallel/fsdp/sharding_strategy.h"

namespace phalanx {

/// Which of the model's units are sharded for themselves.
enum class WrapPolicy { unit, size, by_name, none };

/// When the backward pass gathers the unit that comes next: before the present one's gradients are
/// computed (more overlap, one more unit whole), or after them. Without a value: when it is needed
/// (torch.distributed.fsdp.BackwardPrefetch, or None).
enum class BackwardPrefetch { pre, post };

/// What micro-batches before the last leave behind: gradients of the whole unit, which are reduced
/// once, with the last (no_sync), or their sharded sum, reduced each time: less memory, more
/// communication.
enum class AccumulatedGradients { whole, sharded };

/// The section `parallel.fsdp.auto_wrap`.
struct AutoWrap {
  WrapPolicy policy = WrapPolicy::unit;
  int64_t min_params = 100'000'000;
  std::vector<std::string> names;

  static void describe(config::Schema<AutoWrap>& s);
};

/// Floating-point types of lower precision.
enum class LowPrecision { bfloat16, float16, float32 };

/// The section `parallel.fsdp.mixed_precision`: what sharded parameters are computed with, while
/// the shards that the optimizer moves stay as they are. Names and meanings of
/// torch.distributed.fsdp.MixedPrecision.
struct FsdpMixedPrecision {
  std::optional<LowPrecision> param_dtype;
  std::optional<LowPrecision> reduce_dtype;
  std::optional<LowPrecision> buffer_dtype;
  bool keep_low_precision_grads = false;
  bool cast_forward_inputs = true;

  static void describe(config::Schema<FsdpMixedPrecision>& s);
};

/// The section `parallel.fsdp.mesh`: the ranks as a rectangle of copies and shards.
struct FsdpMesh {
  std::optional<int64_t> replicate;
  std::optional<int64_t> shard;

  static void describe(config::Schema<FsdpMesh>& s);
};

/// Whether a unit's parameters are given up between its forward and its backward pass; a number: so
/// many neighbouring ranks keep them whole together, of all that share a copy, and gather them from
/// each other (torch.distributed.fsdp.fully_shard).
using ReshardAfterForward = std::variant<bool, int64_t>;

namespace config {

template <>
struct Binding<ReshardAfterForward> {
  static Type type();
  static void from_node(ReshardAfterForward& value, const Type& type, const Node& node);
  static Node to_node(const ReshardAfterForward& value, const Type& type);
};

}  // namespace config

/// How FSDP cuts and gathers a model; names and defaults of
/// torch.distributed.fsdp.FullyShardedDataParallel where it has them.
struct FsdpOptions {
  AutoWrap auto_wrap;
  std::vector<std::string> ignored_modules;
  std::optional<int64_t> shard_group_size;
  FsdpMesh mesh;
  std::optional<ReshardAfterForward> reshard_after_forward;
  std::optional<BackwardPrefetch> backward_prefetch = BackwardPrefetch::pre;
  std::optional<bool> forward_prefetch;  ///< None: where passes repeat each other.
  bool limit_all_gathers = true;
  AccumulatedGradients accumulated_gradients = AccumulatedGradients::whole;
  bool broadcast_buffers = true;
  FsdpMixedPrecision mixed_precision;
  bool deferred_init = true;
  std::chrono::milliseconds order_timeout = std::chrono::seconds(30);

  static void describe(config::Schema<FsdpOptions>& s);
};

/// All options and their values, as YAML: to compare those of several ranks.
std::string text_of(const FsdpOptions& options);

/// The mesh of a strategy with these options: fsdp::mesh_of, and UserError for a
/// `parallel.fsdp.mesh` that is not the world.
fsdp::Mesh mesh_of(ShardingStrategy strategy, const FsdpOptions& options, int64_t rank,
                   std::span<const int64_t> hosts);

/// What to warn of where a strategy that is to shard does not: a hybrid one whose groups are of one
/// rank, as on hosts with a GPU each. Says what to set; empty: all is well.
std::string unsharded_warning(ShardingStrategy strategy, const FsdpOptions& options,
                              const fsdp::Mesh& mesh);

/// What becomes of a unit's parameters between its forward and its backward pass.
struct AfterForward {
  bool gives_up = false;
  int64_t kept_by = 1;  ///< Where it is given up: so many ranks keep it whole together; 1: none do.
};

/// Throws UserError for a number of ranks that does not divide the `shards` of a copy.
AfterForward after_forward(ShardingStrategy strategy, const FsdpOptions& options, int64_t shards);

}  // namespace phalanx
