// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "trainer/rpc/agent_state.h"
#include "trainer/rpc/future.h"
#include "trainer/rpc/remote_reference.h"

namespace phalanx::rpc {

/// What the handles of a reference share.
struct RemoteReference::State {
  State(const std::shared_ptr<Agent::State>& of_agent, std::string of_owner, int64_t of_value)
      : agent(of_agent), owner(std::move(of_owner)), id(of_value) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  /// Gives the owner's handle up.
  ~State();

  /// Throws std::logic_error once the agent has ended.
  std::shared_ptr<Agent::State> open_agent() const;

  std::weak_ptr<Agent::State> agent;
  std::string owner;
  int64_t id = 0;
  std::optional<Future> made;  ///< The call that has it made, where this worker has sent that.
};

/// Has the owners count one more handle of each reference; see WireHooks. Does not wait.
Future retain(const Values& values);

}  // namespace phalanx::rpc
