// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/cli/command.h"
#include "trainer/launch/agent/agent_settings.h"

namespace phalanx {

/// The settings of a launch on the hosts of a file, of which this one is the first: those of its
/// own node, and the commands that start the same launch on the others. They run the same program
/// in the same folder with the same arguments, and get those of this process's variables that
/// matter to a run (NCCL_..., LD_LIBRARY_PATH, ...) and those of --export. Throws UserError.
AgentSettings hostfile_settings(const Invocation& invocation, const std::string& hostfile);

}  // namespace phalanx
