// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "trainer/api/attachments.h"
#include "trainer/api/named_values.h"
#include "trainer/api/sharded_tensor_view.h"
#include "trainer/api/state.h"
#include "trainer/api/stateful.h"
#include "trainer/checkpoint/retention/retention.h"
#include "trainer/checkpoint/save/save_error.h"
#include "trainer/checkpoint/save/write_plan.h"
#include "trainer/io/byte_progress.h"
#include "trainer/ranks/ranks.h"
#include "trainer/tensors/random.h"

namespace phalanx {

class KeptPlan;

/// What one rank gives of everything that a run needs to go on as if nothing had happened. Scalars
/// are the same on all ranks.
struct Snapshot {
  State state;                               ///< At the end of step `state.step`.
  std::vector<ShardedTensorView> model;      ///< Parameters and buffers, as this rank holds them.
  std::vector<ShardedTensorView> optimizer;  ///< Optimizer::state().
  RngStates rng_states;                      ///< This rank's; devices are the same on all ranks.
  std::string config = "{}";                 ///< The resolved config, as JSON text.
  std::string data_fingerprint;              ///< BatchSource::fingerprint of the training data.
  uint64_t seed = 0;                         ///< The seed of the sample order.
  int64_t global_batch_size = 1;             ///< Samples an optimizer step over all ranks.
  NamedValues metrics;                       ///< Measured with these weights.
  std::vector<std::string> reduction_order;  ///< ParallelEngine::reduction_order.
  /// What the checkpoint carries, require_attachable; rank 0's are written, others need give none.
  std::shared_ptr<const Attachments> attachments = nullptr;
  std::string base = {};              ///< With adapters alone: Manifest::base.
  std::vector<StatePart> parts = {};  ///< What else is kept, the same parts on all ranks.
};

/// How a checkpoint is saved.
struct SaveOptions {
  Retention retention = {};
  PlanLimits limits = {};
  std::string host = {};  ///< Ranks with the same one share files; empty: the machine's own.
  /// Also write SHA256SUMS, which sha256sum(1) checks; every file is read once more for it.
  bool sha256 = false;
  KeptPlan* kept_plan = nullptr;     ///< Where given, keeps the plan for the next save.
  ByteProgress* progress = nullptr;  ///< Where given, tells how far this rank's part is.
};

/// What a save has done: the same on all ranks, except for the warnings.
struct SavedCheckpoint {
  std::filesystem::path path;         ///< The committed folder.
  uint64_t bytes = 0;                 ///< Written, over all files.
  double seconds = 0;                 ///< Until durable.
  std::vector<std::string> warnings;  ///< On rank 0: what could not be tidied up.
};

/// Saves one checkpoint as `<checkpoints_dir>/step-<step>`, durably and at once: written aside,
/// every file fsynced, the manifest last, committed by one rename, then `latest` moved, then the
/// old ones pruned. At every instant the newest good checkpoint is there; when anything fails on
/// any rank, all throw SaveError, the earlier checkpoints are untouched and nothing half-written is
/// left. Every rank calls it, with a folder that all see; what several hold they share the writing
/// of. Throws CommunicationError where a rank is gone, std::logic_error for views that do not make
/// up tensors and for parts whose name is none, or is taken.
SavedCheckpoint save_checkpoint(const std::filesystem::path& checkpoints_dir,
                                const Snapshot& snapshot, const SaveOptions& options = {},
                                const Ranks& ranks = {});

}  // namespace phalanx
