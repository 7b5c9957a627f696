// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace phalanx {

/// Hardware threads that this process may run on, at least 1: those of its affinity, or the quota
/// if that is less. What computes counts cores, by usable_cores() of trainer/topology: two hardware
/// threads of one core compute no faster than one. `root` is where /proc and /sys are.
int64_t usable_hardware_threads(const std::filesystem::path& root = "/");

/// Whole hardware threads that the quotas of this process's control groups (of either version) come
/// to, perhaps 0; without a quota the largest number. All processes of these groups share them.
int64_t cpu_quota(const std::filesystem::path& root = "/");

/// Which hardware threads the affinity of this process allows, as the kernel writes them: "0-3,8".
/// Empty where it does not tell.
std::string allowed_cores(const std::filesystem::path& root = "/");

}  // namespace phalanx
