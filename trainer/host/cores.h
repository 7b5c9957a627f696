// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace phalanx {

/// Cores that this process may run on, at least 1: its affinity, and the whole cores that the
/// quotas of its control groups (of either version) come to. `root` is where /proc and /sys are.
int64_t usable_cores(const std::filesystem::path& root = "/");

/// Which cores the affinity of this process allows, as the kernel writes them: "0-3,8". Empty where
/// it does not tell.
std::string allowed_cores(const std::filesystem::path& root = "/");

}  // namespace phalanx
