// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/cli/command_parse.h"

namespace phalanx {

/// What `--help` prints of the program or a command: how it is called, what it does, its actions,
/// flags and examples.
std::string command_help(const NamedCommand& command, const TextStyle& style);

}  // namespace phalanx
