// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace phalanx {

/// The command lines of the processes that have started this one: its parent's first, its parent's
/// next, and so on. Ends at the first one that the system does not show. `root` is where the file
/// system begins.
std::vector<std::vector<std::string>> commands_of_ancestors(
    const std::filesystem::path& root = "/");

}  // namespace phalanx
