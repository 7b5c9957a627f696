// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace phalanx {

/// How a user calls this program, for messages that print commands to run: as it was called
/// (argv[0]), or what `bazel run` has called by its link in bazel-bin. "trainer" where the system
/// does not say. A forked process has its parent's. `root` is where the file system begins.
std::string program_name(const std::filesystem::path& root = "/");

}  // namespace phalanx
