// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/remote_reference.h"

#include <fmt/format.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/rpc/own_functions.h"
#include "trainer/rpc/reference_state.h"
#include "trainer/rpc/values.h"

namespace phalanx::rpc {

RemoteReference::State::~State() {
  try {
    const auto agent_now = agent.lock();
    if (!agent_now || !agent_now->is_open) return;
    if (!made || made->is_done()) {
      agent_now->release(owner, id);
      return;
    }
    // It must not come before the call that has the value made.
    made->when_done([agent_now, owner = owner, id = id](const Future&) {
      if (agent_now->is_open) agent_now->release(owner, id);
    });
  } catch (const std::exception&) {
    // The owner keeps the value until its agent ends.
  }
}

std::shared_ptr<Agent::State> RemoteReference::State::open_agent() const {
  auto strong = agent.lock();
  if (!strong) throw std::logic_error("the RPC agent has ended");
  strong->require_open();
  return strong;
}

RemoteReference::RemoteReference(std::shared_ptr<State> state) : state_(std::move(state)) {}

const std::string& RemoteReference::owner() const { return state_->owner; }
int64_t RemoteReference::id() const { return state_->id; }

bool RemoteReference::is_owner() const {
  const auto agent = state_->agent.lock();
  return agent && agent->name() == state_->owner;
}

Values RemoteReference::to_here(std::optional<std::chrono::milliseconds> timeout) const {
  const auto agent = state_->open_agent();
  if (state_->made) state_->made->wait();
  Values values =
      agent->call(state_->owner, kFetch, {.text = std::to_string(state_->id)}, timeout).wait();
  if (agent->name() != state_->owner) return values;
  // What a call of this worker itself answers are the kept tensors themselves.
  for (at::Tensor& tensor : values.tensors) {
    if (tensor.defined()) tensor = tensor.clone();
  }
  return values;
}

const Values& RemoteReference::local_value() const& {
  const auto agent = state_->open_agent();
  if (agent->name() != state_->owner) {
    throw std::logic_error(
        fmt::format("the value of this reference lies on worker '{}': use to_here", state_->owner));
  }
  // Waits as a call does, with its timeout.
  agent->call(state_->owner, kFetch, {.text = std::to_string(state_->id)}, std::nullopt).wait();
  return agent->served->local_value(state_->id);
}

}  // namespace phalanx::rpc
