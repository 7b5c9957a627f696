#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/core/random.h"
#include "trainer/core/sharded_tensor_view.h"

namespace phalanx {

/// A checkpoint whose manifest, file sizes and checksums have been found right.
struct VerifiedCheckpoint {
  std::filesystem::path path;  ///< Its folder.
  Manifest manifest;
};

/// Reads every byte of a checkpoint and compares. Throws CheckpointError naming what is wrong, or
/// IoError.
VerifiedCheckpoint verify_checkpoint(const std::filesystem::path& checkpoint);

/// What `find_latest` came upon.
struct FoundCheckpoint {
  std::optional<VerifiedCheckpoint> newest;  ///< Nothing when there is no good one.
  std::vector<std::string> warnings;         ///< What was skipped, and why.
};

/// The newest good checkpoint: the one `latest` names, or a successor of it that was committed just
/// before a crash; where that one is damaged or missing, the next older good one.
FoundCheckpoint find_latest(const std::filesystem::path& checkpoints_dir);

/// The checkpoint that a user means by a path: a checkpoint's own folder, a folder of checkpoints,
/// or a run's folder (the newest good one of it). Throws UserError when there is none.
FoundCheckpoint find_checkpoint(const std::filesystem::path& path);

/// Fills the views of model and optimizer and returns the states of this rank's random generators;
/// none for a rank that there was not when the checkpoint was saved.
/// Names, shapes and dtypes are all compared before the first byte is written; throws UserError
/// that lists what differs, names missing or unexpected with their nearest match.
RngStates load_checkpoint(const VerifiedCheckpoint& checkpoint,
                          std::span<const ShardedTensorView> model,
                          std::span<const ShardedTensorView> optimizer, int64_t rank = 0);

/// As load_checkpoint, for the model alone: to evaluate it.
void load_model(const VerifiedCheckpoint& checkpoint, std::span<const ShardedTensorView> model);

}  // namespace phalanx
