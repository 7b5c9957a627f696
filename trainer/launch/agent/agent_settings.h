// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/host/local_address.h"
#include "trainer/launch/agent/rank_logs.h"
#include "trainer/launch/agent/remote_node.h"
#include "trainer/topology/numa_binding.h"

namespace phalanx {

/// What an agent is told: the names are torchrun's (torch/distributed/run.py).
struct AgentSettings {
  using Milliseconds = std::chrono::milliseconds;

  /// Which agent serves the store.
  enum class Server {
    automatic,  ///< The first on the host of the endpoint.
    here,
    elsewhere,
  };

  int64_t ranks = 1;      ///< Ranks of this node.
  int64_t min_nodes = 1;  ///< The run starts with fewer than max_nodes after last_call_timeout.
  int64_t max_nodes = 1;
  std::optional<int64_t> node_rank;     ///< This node's; nullopt: as they come.
  std::string host = kLoopbackAddress;  ///< Where the agents meet: the endpoint's.
  uint16_t port = 0;                    ///< 0: a free one, for one node.
  Server server = Server::automatic;
  std::string run_id = "none";
  std::string role = "default";
  std::string node_name;      ///< What other agents call this node.
  std::string version;        ///< The program's; all nodes have the same.
  std::string local_address;  ///< Where this node serves the store, if it does; empty: everywhere.

  int64_t max_restarts = 0;
  Milliseconds monitor_interval{100};       ///< Between two looks at the store.
  Milliseconds join_timeout{600'000};       ///< For min_nodes to come.
  Milliseconds last_call_timeout{30'000};   ///< For more to come, once min_nodes are there.
  Milliseconds close_timeout{30'000};       ///< From SIGTERM to SIGKILL.
  Milliseconds keep_alive_timeout{15'000};  ///< A node that is silent for so long is lost.

  /// For the ranks of programs; those of a config have its parallel.numa_binding.
  NumaBinding numa_binding = NumaBinding::none;

  LogSettings logs;

  /// The words that start this launch, in front of a config: for messages. Empty: of a program.
  std::vector<std::string> line;

  std::vector<RemoteNode> remote_nodes;  ///< The others, which this one starts.
  bool is_remote_node = false;           ///< One of those: the other tells how the run ends.
};

/// Behind a message that a node was lost: how a longer silence is allowed.
inline constexpr const char* kLongerSilence =
    "; where the network may be down for longer, give all nodes a larger "
    "--rdzv-conf=keep_alive_interval=SECONDS: the limit is that times keep_alive_max_attempt (3)";

}  // namespace phalanx
