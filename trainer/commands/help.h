// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/cli/command_parse.h"

namespace phalanx {

/// Prints what `--help` shows of a command, as wide as the terminal.
void print_help(const NamedCommand& command);

}  // namespace phalanx
