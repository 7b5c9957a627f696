// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace phalanx {

/// The folders of this process's control group and of those around it, innermost first, to where
/// the hierarchy is mounted: each may limit what all processes within may take. `controller` names
/// a hierarchy of version 1 ("memory", "cpu"), or none for the one of version 2. Empty where the
/// process is in no such hierarchy. In a container the group's path may be the host's: folders may
/// be missing, and the last one is then the container's own. `root` is where /proc and /sys are.
/// See cgroups(7).
std::vector<std::filesystem::path> control_groups(std::string_view controller,
                                                  const std::filesystem::path& root = "/");

}  // namespace phalanx
