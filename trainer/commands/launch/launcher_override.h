// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/cli/command.h"

namespace phalanx {

/// Throws UserError for an override of the section `launcher` among the arguments of `trainer
/// launch` (CONFIG [CONFIG ...] [key=value ...]), with the flag to write: the launch starts the
/// ranks itself, and does not read that section. A config file may hold it, as it is also for
/// other ways to start the run.
void refuse_launcher_overrides(Arguments arguments);

}  // namespace phalanx
