// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace phalanx {

/// The checkpoints that a user means by a path: one checkpoint, or those of a folder of checkpoints
/// or of a run's folder, by step. Throws UserError if the path leads to none.
std::vector<std::filesystem::path> checkpoints_at(const std::filesystem::path& path);

/// The one that a user means: that checkpoint, or the one that the folder's `latest` names. Throws
/// UserError.
std::filesystem::path checkpoint_at(const std::filesystem::path& path);

/// The folder of checkpoints of a run's folder, or that folder itself. Throws UserError if the path
/// leads to none.
std::filesystem::path checkpoints_folder_at(const std::filesystem::path& path);

}  // namespace phalanx
