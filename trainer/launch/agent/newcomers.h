// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "trainer/launch/agent/agent_settings.h"
#include "trainer/launch/agent/heartbeats.h"

namespace phalanx {

/// Who may take part: what each node that comes is asked before it counts, and who is refused.
/// Asking costs the ranks that run nothing; a node that is refused ends, and the run goes on.
class Newcomers {
 public:
  /// `settings` are those of the agent that serves the store, `server` is its number.
  Newcomers(const AgentSettings& settings, int64_t server);

  /// The present round: its nodes, those of the last one between two, and whether nodes may be
  /// asked now. A round that has just begun is left alone until a step is finished.
  struct Round {
    const std::vector<Member>& members;
    bool may_ask = true;
  };
  void look(const Agents& agents, const Heartbeats& beats, const Round& round,
            AgentClock::time_point now);

  /// Whether a node that is no member of the round was asked what it is now to be asked, and fits.
  bool is_admitted(int64_t agent, const AgentStatus& status) const;

  /// By agent, why; and what it is asked.
  const std::map<int64_t, std::string>& refused() const { return refused_; }
  const std::map<int64_t, JoinAsk>& asked() const { return asked_; }

 private:
  std::string why_refused(const AgentStatus& status, const AgentStatus& server) const;
  void refuse(const Agents& agents, const Heartbeats& beats, const Round& round,
              AgentClock::time_point now);
  void ask(const Agents& agents, const Heartbeats& beats, const Round& round,
           AgentClock::time_point now);
  bool has_answered(int64_t agent, const AgentStatus& status) const;
  bool hangs(int64_t agent, const AgentStatus& status, AgentClock::time_point now) const;

  AgentSettings settings_;
  int64_t server_;
  std::map<int64_t, std::string> refused_;
  std::map<int64_t, JoinAsk> asked_;
  std::map<int64_t, AgentClock::time_point> asked_since_;
  int64_t samples_a_step_ = 0;  ///< The run's, as its ranks said last.
};

}  // namespace phalanx
