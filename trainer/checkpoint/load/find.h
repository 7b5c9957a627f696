// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace phalanx {

/// The checkpoints of a folder in the order in which they are to be tried: the one `latest` names,
/// or a successor of it that was committed just before a crash, then older ones, newest first. None
/// has been looked into. Throws IoError.
std::vector<std::filesystem::path> candidates(const std::filesystem::path& checkpoints_dir);

/// The same for what a user means by a path: a checkpoint's own folder, a folder of checkpoints, a
/// run's folder, or one checkpoint of these (named_checkpoint). Throws UserError when there is
/// none.
std::vector<std::filesystem::path> candidates_at(const std::filesystem::path& path);

}  // namespace phalanx
