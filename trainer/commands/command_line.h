// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// Runs `trainer [COMMAND] …` and returns the process's exit code: 0, 2 for a user's mistake,
/// 1 for a failure, 128 + signal when one stopped the run. Prints errors to stderr.
int run_command_line(int argc, char** argv);

}  // namespace phalanx
