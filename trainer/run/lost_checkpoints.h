// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trainer/config/tree/forward.h"

namespace phalanx {

/// Where a run's folder says that it has saved checkpoints, if it holds none any more: "ends.jsonl
/// names step-00000040". Nothing for a folder that holds one, or that has never had one. Throws
/// IoError.
std::optional<std::string> lost_checkpoints(const std::filesystem::path& exp_dir);

/// Throws UserError for a run whose checkpoints are gone, with what to write to begin anew. With
/// checkpoint.resume=if_any such a run may begin anew: returns a note for the user then, and
/// nothing in all other cases.
std::optional<std::string> require_none_lost(const std::filesystem::path& exp_dir,
                                             const config::Node& resolved);

}  // namespace phalanx
