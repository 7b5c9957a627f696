// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trainer/cli/command.h"
#include "trainer/launch/agent/agent_settings.h"

namespace phalanx {

/// torchrun's flag for the cores of ranks; the config's parallel.numa_binding takes the same words.
inline constexpr std::string_view kNumaBindingFlag = "--numa-binding";

/// Flags of `trainer launch` that torchrun has not.
inline constexpr std::string_view kHostfileFlag = "--hostfile";
inline constexpr std::string_view kSshFlag = "--ssh";
inline constexpr std::string_view kExportFlag = "--export";
inline constexpr std::string_view kRemoteNodeFlag = "--remote-node";

/// What --ssh is by default. A host that is silent for 15 seconds counts as lost, as nodes do.
inline constexpr std::string_view kDefaultSsh =
    "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5";

/// The flags of `trainer launch`: those of torchrun (torch/distributed/run.py), with its defaults.
std::vector<Flag> agent_flags();

/// What they say, but those of --hostfile. A flag that is not written takes the value of its
/// variable, which torchrun names PET_NNODES for --nnodes, and so on. Throws UserError.
AgentSettings agent_settings(const Invocation& invocation);

}  // namespace phalanx
