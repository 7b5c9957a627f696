#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/safetensors.h"
#include "trainer/core/named_values.h"
#include "trainer/core/random.h"
#include "trainer/core/sharded_tensor_view.h"
#include "trainer/core/state.h"

namespace phalanx {

/// Everything that a run needs to go on as if nothing had happened.
struct Snapshot {
  State state;                               ///< At the end of step `state.step`.
  std::vector<ShardedTensorView> model;      ///< Parameters and buffers.
  std::vector<ShardedTensorView> optimizer;  ///< Optimizer::state().
  /// Gives the tensors of these two when they are written, the model's first; none: they lie in the
  /// views.
  FetchTensor fetch = nullptr;
  std::vector<RngStates> rng_states;  ///< Each rank's.
  std::string config = "{}";          ///< The resolved config, as JSON text.
  std::string data_fingerprint;       ///< BatchSource::fingerprint of the training data.
  uint64_t seed = 0;                  ///< Of the sample order.
  int64_t global_batch_size = 0;      ///< Samples an optimizer step over all ranks.
  int64_t world_size = 1;             ///< Ranks.
  NamedValues metrics;                ///< Last known values.
};

/// What stays after a save.
struct Retention {
  std::optional<int64_t> keep_last;     ///< How many of the newest (>= 1); all when not set.
  std::optional<int64_t> resumed_step;  ///< The checkpoint this run came from: never removed.
};

/// What a save has done.
struct SavedCheckpoint {
  std::filesystem::path path;         ///< The committed folder.
  uint64_t bytes = 0;                 ///< Written, over all files.
  double seconds = 0;                 ///< Until durable.
  std::vector<std::string> warnings;  ///< Old checkpoints that could not be removed.
};

/// Saves one checkpoint as `<checkpoints_dir>/step-<step>`, durably and at once: written aside,
/// every file fsynced, the manifest last, committed by one rename, then `latest` moved, then the
/// old ones pruned. At every instant the newest good checkpoint is there; when anything fails,
/// IoError is thrown, the earlier checkpoints are untouched and nothing half-written is left.
SavedCheckpoint save_checkpoint(const std::filesystem::path& checkpoints_dir,
                                const Snapshot& snapshot, const Retention& retention = {});

}  // namespace phalanx
