// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace phalanx {

/// How the user called this program (argv[0]), for messages that print commands to run; "trainer"
/// where the system does not say. A forked process has its parent's. `root` is where the file
/// system begins.
std::string program_name(const std::filesystem::path& root = "/");

}  // namespace phalanx
