// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/plan/run_plan.h"
#include "trainer/run/load_config.h"

namespace phalanx {

/// What the nodes of a launch compare of their runs: the config, and the folder.
std::string description_for_nodes(const UserConfig& user);

/// The run that a node comes to.
struct JoinedRun {
  std::string job;             ///< Its launch (launch_job).
  std::string node;            ///< Where the next one was made.
  std::string description;     ///< description_for_nodes there.
  std::vector<int64_t> ranks;  ///< Of each node, with the one that comes; empty: none runs yet.
  int64_t samples_a_step = 0;  ///< 0: not known.
};

/// Why the run cannot go on with this node; empty where it can: another config or folder, a folder
/// in which another launch trains, ranks that cannot share a step's samples, or that the sharding
/// strategy does not fit. What ranks would find once the run has been stopped for the node.
std::string why_not_join(const UserConfig& user, const RunPlan& plan, const JoinedRun& run);

}  // namespace phalanx
