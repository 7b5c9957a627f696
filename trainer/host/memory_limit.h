// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace phalanx {

/// How much more memory of a host or of a GPU this process may take, and by what.
struct MemoryLimit {
  int64_t bytes = 0;   ///< Below zero: more is taken than would be allowed now.
  std::string source;  ///< "RLIMIT_DATA", "the memory cgroup", "the free memory of cuda:0".
  /// By the ranks of the host or GPU, each with its part: more ranks there do not help.
  bool is_shared = false;
};

/// The tightest of the limits that this process knows: its own, and its share of those that it has
/// in common with the other ranks of the host: the memory cgroups around it (of either version),
/// where what files have in the page cache counts as free, and the host's available memory. None:
/// nothing limits it. `root` is where /proc and /sys are.
std::optional<MemoryLimit> memory_limit(int64_t local_world_size,
                                        const std::filesystem::path& root = "/");

}  // namespace phalanx
