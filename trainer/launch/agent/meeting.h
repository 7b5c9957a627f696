// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "trainer/base/descriptor.h"
#include "trainer/launch/agent/agent_messages.h"
#include "trainer/launch/agent/agent_settings.h"
#include "trainer/launch/agent/joining.h"

namespace phalanx {

/// The other agents cannot be reached any more.
class LostMeeting : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An agent's place among the agents of all nodes. A process of its own speaks with them through
/// the store, and serves it where this is the agent to do so: no network can hold up what this
/// node's ranks need, and this process stays one of a single thread, which can fork them.
class Meeting {
 public:
  /// Joins. Sets the port of `settings` that was free. Throws UserError.
  Meeting(AgentSettings& settings, const Launched& launched);
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  /// Leaves: where this agent serves the store, once the others have left.
  ~Meeting();

  /// Becomes readable when `take` has something.
  int descriptor() const { return socket_.number(); }
  /// The orders that have come since the last call; never waits. Throws UserError where this agent
  /// is refused, LostMeeting.
  std::vector<Order> take();
  /// This agent's number in orders; known with the first order.
  int64_t number() const { return number_; }
  /// What the first node has begun; known with the first order.
  const LaunchFacts& facts() const { return facts_; }
  /// Why the others have not been met so far; empty where nobody has said why.
  const std::string& why_waiting() const { return why_waiting_; }

  /// Whether this agent serves the store.
  bool serves() const { return serves_; }

  /// In a rank that this process has forked: its end of the connection must not outlive the agent.
  void leave_to_child() { socket_.close(); }

  /// Tells the others. Throws as `take`.
  void tell(const AgentStatus& status);

 private:
  [[noreturn]] void throw_died();

  Descriptor socket_;
  pid_t process_ = 0;  ///< 0: it was waited for.
  int64_t number_ = -1;
  LaunchFacts facts_;
  std::string why_waiting_;
  bool serves_ = false;
};

}  // namespace phalanx
