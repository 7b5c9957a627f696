// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace phalanx {

/// GPUs that a process may use, by the driver's files (/dev/nvidia0, ...): CUDA must not be
/// initialised before a process forks. CUDA_VISIBLE_DEVICES, where it is set, limits them. `root`
/// is where the file system begins.
int64_t usable_gpus(const std::filesystem::path& root = "/");

/// PCI addresses ("0000:07:00.0") of those, in the order in which CUDA numbers equal GPUs: by
/// address, or as CUDA_VISIBLE_DEVICES lists them. Empty where the driver's files do not tell
/// (parts of GPUs, MIG, are no PCI devices).
std::vector<std::string> gpu_addresses(const std::filesystem::path& root = "/");

/// Makes GPUs invisible to this process and those that it forks, before it has looked at them.
void hide_gpus();

}  // namespace phalanx
