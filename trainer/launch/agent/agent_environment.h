// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "trainer/launch/agent/agent_messages.h"
#include "trainer/launch/agent/agent_settings.h"
#include "trainer/ranks/environment/environment.h"

namespace phalanx {

/// A node's place in a round.
struct NodePlace {
  int64_t group_rank = 0;        ///< Which of the nodes this is.
  int64_t group_world_size = 1;  ///< Nodes.
  int64_t first_rank = 0;        ///< The rank of the node's local rank 0.
  int64_t world_size = 1;        ///< Ranks of all nodes.
  int64_t restart_count = 0;     ///< Rounds before this one.
  std::string job = {};          ///< LaunchFacts::job.
};

/// The place of a member of an order to run.
NodePlace place_in(const Order& order, int64_t group_rank);

/// Sets the variables that torchrun sets beside those of export_environment, for this process and
/// those that it starts. `error_file` may be empty: none.
void export_agent_variables(const AgentSettings& settings, const NodePlace& place,
                            const Environment& environment,
                            const std::filesystem::path& error_file);

}  // namespace phalanx
