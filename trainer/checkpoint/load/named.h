// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace phalanx {

/// The checkpoint that RUN@best or RUN@STEP names, where RUN is a run's folder or its checkpoints
/// folder; any other path as it is. The best is that by the run's checkpoint.keep_best, without it
/// that of the lowest loss. Throws UserError for one that does not exist.
std::filesystem::path named_checkpoint(const std::filesystem::path& path);

/// The checkpoint of a folder of checkpoints that RUN@best names, by its step; nothing where no
/// checkpoint has the metric.
std::optional<int64_t> best_step_of(const std::filesystem::path& checkpoints_dir);

/// A line for the user where `named`, a run's folder, has led to a checkpoint, and another one is
/// the best by the run's checkpoint.keep_best; empty otherwise.
std::string note_of_better(const std::filesystem::path& named, const std::filesystem::path& taken);

}  // namespace phalanx
