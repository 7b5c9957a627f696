// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/rpc/agent_state.h"
#include "trainer/rpc/own_functions.h"
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
  return agent->call(state_->owner, kFetch, {.text = std::to_string(state_->id)}, timeout).wait();
}

const Values& RemoteReference::local_value() const {
  const auto agent = state_->open_agent();
  if (agent->name() != state_->owner) {
    throw std::logic_error(
        fmt::format("the value of this reference lies on worker '{}': use to_here", state_->owner));
  }
  return agent->served->local_value(state_->id);
}

Future Agent::State::retain(const Values& values) const {
  std::vector<Future> retained;
  for (const RemoteReference& reference : values.references) {
    const auto& of_owner = reference.state();
    const Values text{.text = std::to_string(of_owner->id)};
    const auto ask = [this, text, owner = of_owner->owner] {
      return call(owner, kRetain, text, std::nullopt);
    };
    if (of_owner->made) of_owner->made->wait();
    retained.push_back(ask());
  }
  // The handles of `values` live until all are counted.
  const Promise promise;
  auto left = std::make_shared<std::atomic<size_t>>(retained.size());
  for (const Future& each : retained) {
    each.when_done([promise, left, values](const Future& done) {
      if (const auto error = done.error()) promise.fail(error);
      if (--*left == 0) promise.set({});
    });
  }
  return promise.future();
}

void Agent::State::release(const std::string& owner, int64_t id) const {
  // Nobody waits for it: an owner that is gone keeps nothing.
  [[maybe_unused]] const Future released =
      call(owner, kRelease, {.text = std::to_string(id)}, std::nullopt);
}

}  // namespace phalanx::rpc
