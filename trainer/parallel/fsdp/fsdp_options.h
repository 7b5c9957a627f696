#pragma once

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

/// How FSDP cuts and gathers a model; names and defaults of
/// torch.distributed.fsdp.FullyShardedDataParallel where it has them.
struct FsdpOptions {
  AutoWrap auto_wrap;
  std::vector<std::string> ignored_modules;
  std::optional<int64_t> shard_group_size;
  std::optional<bool> reshard_after_forward;
  BackwardPrefetch backward_prefetch = BackwardPrefetch::pre;
  bool forward_prefetch = false;
  AccumulatedGradients accumulated_gradients = AccumulatedGradients::whole;
  bool broadcast_buffers = true;

  static void describe(config::Schema<FsdpOptions>& s);
};

}  // namespace phalanx
