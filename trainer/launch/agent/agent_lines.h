// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/launch/agent/agent_settings.h"
#include "trainer/ranks/environment/launch_lines.h"

namespace phalanx {

/// How to start this launch again: a line for each node that has a number, with its ranks, else one
/// for all. `ranks_of_nodes` are those that it has, `node` is this one. None without settings.line.
std::vector<LaunchLine> lines_of_launch(const AgentSettings& settings,
                                        const std::vector<int64_t>& ranks_of_nodes, int64_t node);

/// The same before the nodes have met: each is taken to have as many ranks as this one.
std::vector<LaunchLine> lines_of_launch(const AgentSettings& settings);

}  // namespace phalanx
