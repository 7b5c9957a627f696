#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/schema.h"

namespace phalanx {

/// Which of the model's units are sharded for themselves.
enum class WrapPolicy { unit, size, by_name, none };

/// When the backward pass gathers the unit that comes next: before the present one's gradients are
/// computed (more overlap, one more unit whole), after them, or when it is needed
/// (torch.distributed.fsdp.BackwardPrefetch).
enum class BackwardPrefetch { none, pre, post };

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
  std::optional<LowPrecision> param;
  std::optional<LowPrecision> reduce;
  std::optional<LowPrecision> buffer;
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

/// How FSDP cuts and gathers a model; names and defaults of
/// torch.distributed.fsdp.FullyShardedDataParallel where it has them.
struct FsdpOptions {
  AutoWrap auto_wrap;
  std::vector<std::string> ignored_modules;
  std::optional<int64_t> shard_group_size;
  FsdpMesh mesh;
  std::optional<bool> reshard_after_forward;
  BackwardPrefetch backward_prefetch = BackwardPrefetch::pre;
  bool forward_prefetch = false;
  AccumulatedGradients accumulated_gradients = AccumulatedGradients::whole;
  bool broadcast_buffers = true;
  FsdpMixedPrecision mixed_precision;
  bool deferred_init = true;
  std::chrono::milliseconds order_timeout = std::chrono::seconds(30);

  static void describe(config::Schema<FsdpOptions>& s);
};

/// The ranks that share one copy by shard_group_size or mesh; nothing where neither says. Throws
/// UserError for a mesh that is not the world.
std::optional<int64_t> shard_group_size(const FsdpOptions& options, int64_t world_size);

}  // namespace phalanx
