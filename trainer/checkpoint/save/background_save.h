// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/checkpoint/save/save.h"
#include "trainer/io/byte_progress.h"
#include "trainer/memory/pinned_memory.h"

namespace phalanx {

class PlannedSave;

/// Saves checkpoints while training goes on: the values that this rank writes are copied into host
/// memory, which is kept for the next one, and written by a thread of its own. One at a time.
class BackgroundSave {
 public:
  /// `ranks` are used by that thread alone (Ranks::separate).
  /// `pins` are for what is saved from GPUs.
  explicit BackgroundSave(Ranks ranks, std::shared_ptr<const HostPins> pins = cuda_pins());
  /// Waits for what is under way; errors are lost, as finish() would have told of them.
  ~BackgroundSave();

  /// Copies what is to be saved, and returns; from then on it may change. Nothing is under way.
  /// `ranks`: the caller's own connections, over which it is planned. `options.progress` is not
  /// used: progress() is. Throws as save_checkpoint.
  void start(const std::filesystem::path& checkpoints_dir, Snapshot snapshot, SaveOptions options,
             const Ranks& ranks);

  /// Started, and its end not yet asked for.
  bool is_under_way() const { return saved_.valid(); }
  /// finish() would not wait.
  bool is_done() const;
  /// How far what is under way is, on this rank.
  const ByteProgress& progress() const { return progress_; }
  /// Waits until what is under way is durable and committed. Throws as save_checkpoint.
  SavedCheckpoint finish();

 private:
  at::Tensor buffer(uint64_t bytes, bool pinned);
  std::vector<at::Tensor> copy_values(const PlannedSave& save);

  Ranks ranks_;
  std::shared_ptr<const HostPins> pins_;
  at::Tensor buffer_;  ///< Host memory, pinned where the tensors are on a GPU.
  bool is_pinned_ = false;
  ByteProgress progress_;  ///< Written by the thread of `saved_`, which ends before it.
  std::future<SavedCheckpoint> saved_;
};

}  // namespace phalanx
