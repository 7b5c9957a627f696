// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>

#include "trainer/launch/agent/agent_messages.h"

namespace phalanx {

/// What agents said last, by number: in the order in which they came.
using Agents = std::map<int64_t, AgentStatus>;
using AgentClock = std::chrono::steady_clock;

/// When each agent was heard.
class Heartbeats {
 public:
  explicit Heartbeats(std::chrono::milliseconds timeout) : timeout_(timeout) {}

  /// The next functions are for agents that were heard here.
  void listen(const Agents& agents, AgentClock::time_point now);

  bool is_silent(int64_t agent, AgentClock::time_point now) const;
  /// An agent that was killed may look alive for a while: whether `agent` came after the last beat
  /// of `earlier`, whose place it may have then.
  bool replaces(int64_t agent, int64_t earlier) const;

 private:
  struct Beat {
    int64_t number = 0;
    AgentClock::time_point first;
    AgentClock::time_point last;
  };

  std::chrono::milliseconds timeout_;
  std::map<int64_t, Beat> beats_;
};

}  // namespace phalanx
