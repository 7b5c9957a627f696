// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/tree/node.h"

namespace phalanx {

/// How this process was called, the program first; a forked rank has its launcher's. `root` is
/// where the file system begins.
std::vector<std::string> command_line(const std::filesystem::path& root = "/");

/// The CPU as the system calls it; empty where it does not say.
std::string cpu_model(const std::filesystem::path& root = "/");

/// Whether a variable's name says that its value is a secret, or is of a person.
bool is_private(std::string_view variable);

/// Those variables of `environment` ("NAME=value") that can matter to a run: what chooses devices
/// and threads, what libraries and launchers read (docs/runs.md lists them), and those in `also`.
/// Nothing private.
std::map<std::string, std::string> relevant_environment(std::span<const std::string> environment,
                                                        const std::set<std::string>& also);

/// The environment of this process.
std::vector<std::string> whole_environment();

/// Variables that a config takes through `${oc.env:NAME}`.
std::set<std::string> variables_taken(const config::Node& tree);

}  // namespace phalanx
