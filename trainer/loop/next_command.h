// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

// Commands that messages offer the user: complete, quoted for a shell, with the program's name as
// the user typed it.

/// Goes on with the run in `exp_dir`, with the config that is kept there.
std::string command_to_resume(const std::string& exp_dir);

/// Validates the newest checkpoint of the run in `exp_dir`.
std::string command_to_evaluate(const std::string& exp_dir);

}  // namespace phalanx
