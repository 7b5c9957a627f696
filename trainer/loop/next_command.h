// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/config/tree/forward.h"

namespace phalanx {

// Commands that messages offer the user: complete, quoted for a shell, with the program's name as
// the user typed it.

/// Goes on with the run in `exp_dir`, with the config that is kept there, in the ranks of the launch
/// that this process belongs to: of several nodes, a line for each, with its place in front.
std::string command_to_resume(const std::string& exp_dir);

/// The same for a run whose resolved config is known: where that refuses to go on
/// (checkpoint.resume=never), the command allows it.
std::string command_to_resume(const std::string& exp_dir, const config::Node& resolved);

/// Validates the newest checkpoint of the run in `exp_dir`.
std::string command_to_evaluate(const std::string& exp_dir);

}  // namespace phalanx
