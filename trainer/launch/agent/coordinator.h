// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trainer/launch/agent/agent_messages.h"
#include "trainer/launch/agent/agent_settings.h"
#include "trainer/launch/agent/heartbeats.h"
#include "trainer/launch/agent/newcomers.h"

namespace phalanx {

/// Decides for all agents of a run, in the process that serves their store: which nodes make up a
/// round, when it is over, and whether another one follows. Knows no store and no processes: what
/// the agents say comes in, an order comes out.
class Coordinator {
 public:
  using Clock = AgentClock;

  /// `settings` are those of the agent that serves the store, `server` is its number.
  Coordinator(const AgentSettings& settings, int64_t server, Clock::time_point now);

  /// The order at this time, which is not before that of the last call. The server is among the
  /// agents.
  const Order& decide(const Agents& agents, Clock::time_point now);

  /// Whether no other agent waits for orders any more: all have left, are lost or were refused.
  bool is_alone(const Agents& agents, Clock::time_point now) const;

 private:
  bool is_elastic() const { return settings_.min_nodes < settings_.max_nodes; }
  bool is_member(int64_t agent) const { return members_.contains(agent); }
  std::string name_of(size_t group_rank, const Agents& agents) const;
  void announce(std::string line);

  void look_at_newcomers(const Agents& agents, Clock::time_point now);
  void gather(const Agents& agents, Clock::time_point now);
  std::vector<int64_t> candidates(const Agents& agents, Clock::time_point now) const;
  void begin(const std::vector<int64_t>& members, const Agents& agents);
  void give_up(int64_t count);

  void watch(const Agents& agents, Clock::time_point now);
  void note_ends(const Agents& agents, Clock::time_point now);
  std::vector<int64_t> joining(const Agents& agents, Clock::time_point now) const;
  bool has_stepped(const Agents& agents) const;
  bool all_have(const Agents& agents, Clock::time_point now, bool only_finished) const;
  void conclude(const Agents& agents, Clock::time_point now);
  bool goes_on_without_leavers(const Agents& agents, Clock::time_point now) const;
  void count_lost_as_leavers(const Agents& agents);
  RankOutcome outcome_of_stop() const;
  void dismiss_leavers(const Agents& agents);
  void end(RankOutcome outcome);

  AgentSettings settings_;
  int64_t server_;
  Heartbeats beats_;
  Newcomers newcomers_;
  Order order_;
  std::set<int64_t> members_;            // agents of order_.members
  std::map<int64_t, NodeEnd> failures_;  ///< Those of this round, by agent.
  std::map<int64_t, NodeEnd> stopped_;   ///< By a signal, by agent.
  std::set<int64_t> leavers_;            ///< Of these: those that the signal came to.
  std::set<int64_t> vanished_;           ///< Of failures_: those that were lost, or gave no reason.
  std::string lost_;                     ///< The last node that was lost, and how.
  int64_t restarts_ = 0;                 ///< After failures.
  Clock::time_point gathers_since_;
  Clock::time_point not_before_;                   ///< The back-off's end.
  std::optional<Clock::time_point> enough_since_;  ///< min_nodes are there.
};

}  // namespace phalanx
