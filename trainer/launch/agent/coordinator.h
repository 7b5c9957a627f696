// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trainer/launch/agent/agent_messages.h"
#include "trainer/launch/agent/agent_settings.h"

namespace phalanx {

/// Decides for all agents of a run, in the process that serves their store: which nodes make up a
/// round, when it is over, and whether another one follows. Knows no store and no processes: what
/// the agents say comes in, an order comes out.
class Coordinator {
 public:
  using Clock = std::chrono::steady_clock;
  /// What agents said last, by number: in the order in which they came.
  using Agents = std::map<int64_t, AgentStatus>;

  /// `settings` are those of the agent that serves the store, `server` is its number.
  Coordinator(const AgentSettings& settings, int64_t server, Clock::time_point now);

  /// The order at this time, which is not before that of the last call. The server is among the
  /// agents.
  const Order& decide(const Agents& agents, Clock::time_point now);

  /// Whether no other agent waits for orders any more: all have left, are lost or were refused.
  bool is_alone(const Agents& agents, Clock::time_point now) const;

 private:
  struct Beat {
    int64_t number = 0;
    Clock::time_point first;  ///< When the agent came.
    Clock::time_point last;
  };

  void listen(const Agents& agents, Clock::time_point now);
  bool is_silent(int64_t agent, Clock::time_point now) const;
  bool is_member(int64_t agent) const;
  bool replaces(int64_t agent, int64_t earlier) const;
  std::string name_of(size_t group_rank, const Agents& agents) const;

  void gather(const Agents& agents, Clock::time_point now);
  std::vector<int64_t> candidates(const Agents& agents, Clock::time_point now) const;
  void refuse_strangers(const Agents& agents, Clock::time_point now);
  std::string why_refused(const AgentStatus& status, const AgentStatus& server) const;
  void begin(const std::vector<int64_t>& members, const Agents& agents);

  void watch(const Agents& agents, Clock::time_point now);
  void note_ends(const Agents& agents, Clock::time_point now);
  bool all_have(const Agents& agents, Clock::time_point now, bool only_finished) const;
  void conclude(Clock::time_point now);
  void end(RankOutcome outcome);

  AgentSettings settings_;
  int64_t server_;
  Order order_;
  std::set<int64_t> members_;  // agents of order_.members
  std::map<int64_t, Beat> beats_;
  std::map<int64_t, NodeEnd> failures_;  ///< Those of this round, by agent.
  std::optional<RankOutcome> stopped_;   ///< By a signal to a node.
  int64_t restarts_ = 0;                 ///< After failures.
  Clock::time_point gathers_since_;
  Clock::time_point not_before_;                   ///< The back-off's end.
  std::optional<Clock::time_point> enough_since_;  ///< min_nodes are there.
};

}  // namespace phalanx
