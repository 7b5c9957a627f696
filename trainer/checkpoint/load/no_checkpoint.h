// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace phalanx {

/// Throws UserError for a path that leads to no checkpoint: it does not exist, is a file, is a
/// folder of runs, a run that has saved none, or what others wrote (refuse_foreign).
[[noreturn]] void refuse_without_checkpoint(const std::filesystem::path& path);

}  // namespace phalanx
