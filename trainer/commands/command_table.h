// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/cli/command.h"
#include "trainer/cli/command_parse.h"

namespace phalanx {

/// The program, with its commands as actions; the first is the default command.
NamedCommand program();

}  // namespace phalanx
