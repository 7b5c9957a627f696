// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "trainer/checkpoint/retention/retention.h"

namespace phalanx {

/// Which checkpoint of a folder is best, and by what.
struct BestCheckpoint {
  int64_t step = 0;
  double value = 0;  ///< The metric's value.
};

/// What `checkpoint.keep_best` says in the config of the folder's newest checkpoint; nothing where
/// it is null, or that checkpoint cannot be read.
std::optional<KeepBest> keep_best_of(const std::filesystem::path& checkpoints_dir);

/// The best of the committed checkpoints by this metric, of equal ones the later; nothing where
/// none has it. Throws IoError.
std::optional<BestCheckpoint> best_checkpoint(const std::filesystem::path& checkpoints_dir,
                                              const KeepBest& by);

}  // namespace phalanx
