#pragma once

#include <cstdint>
#include <filesystem>

namespace phalanx {

/// GPUs that a rank may use, by the driver's files (/dev/nvidia0, ...): CUDA must not be
/// initialised before a process forks. CUDA_VISIBLE_DEVICES, where it is set, limits them. `root`
/// is where the file system begins.
int64_t usable_gpus(const std::filesystem::path& root = "/");

/// Cores that this process may run on, at least 1: its affinity, and the whole cores that the
/// quotas of its control groups (version 2) come to.
int64_t usable_cores(const std::filesystem::path& root = "/");

}  // namespace phalanx
