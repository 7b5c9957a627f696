// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace phalanx::compute {

/// The CPU's name and the instruction sets that matter to products, from /proc/cpuinfo: "AMD EPYC
/// 7763 64-Core Processor, avx2 fma"; "unknown" where it says nothing. `root` is where the file
/// system begins.
std::string describe_cpu(const std::filesystem::path& root = "/");

}  // namespace phalanx::compute
