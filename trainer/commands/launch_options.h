// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "trainer/cli/command.h"
#include "trainer/launch/agent/agent_settings.h"

namespace phalanx {

/// The flags of `trainer launch`: those of torchrun (torch/distributed/run.py), with its defaults.
std::vector<Flag> agent_flags();

/// What they say. A flag that is not written takes the value of its variable, which torchrun names
/// PET_NNODES for --nnodes, and so on. Throws UserError.
AgentSettings agent_settings(const Invocation& invocation);

}  // namespace phalanx
