// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/launch/agent/coordinator.h"

namespace phalanx {

using AgentState = AgentStatus::State;
using OrderKind = Order::Kind;

/// Agents that do as they are told, or as a test tells them; time passes when a test says so.
class Nodes {
 public:
  explicit Nodes(AgentSettings settings) : settings_(settings), coordinator_(settings, 0, now_) {}

  /// A node comes; returns its number.
  int64_t come(int64_t node_rank = -1, const std::string& version = "1", int64_t ranks = 2) {
    const auto agent = static_cast<int64_t>(agents_.size());
    agents_[agent] = {.node = "host-" + std::to_string(agent),
                      .version = version,
                      .ranks = ranks,
                      .node_rank = node_rank,
                      .min_nodes = settings_.min_nodes,
                      .max_nodes = settings_.max_nodes,
                      .state = AgentState::joining};
    return agent;
  }

  /// Those that are asked whether they fit answer, if a test does not keep them from it.
  const Order& order() {
    for (;;) {
      const Order& order = coordinator_.decide(agents_, now_);
      bool has_answered = false;
      for (const auto& [agent, ask] : order.asked) {
        AgentStatus& status = agents_[agent];
        const bool may_answer =
            status.state == AgentState::joining || status.state == AgentState::waiting;
        if (hanging_.contains(agent) || !may_answer || status.answered == ask) continue;
        const auto fits = fits_.find(agent);
        if (fits != fits_.end()) status.unfit = fits->second(ask);
        status.answered = ask;
        status.state = AgentState::waiting;
        has_answered = true;
      }
      if (!has_answered) return order;
    }
  }
  bool is_alone() const { return coordinator_.is_alone(agents_, now_); }

  /// Time passes, in which all but those who are silent are heard.
  const Order& wait(std::chrono::milliseconds time) {
    for (std::chrono::milliseconds left = time; left.count() > 0;
         left -= std::chrono::milliseconds(500)) {
      now_ += std::min(left, std::chrono::milliseconds(500));
      for (auto& [agent, status] : agents_) status.beat += silent_.contains(agent) ? 0 : 1;
      order();
    }
    return order();
  }

  void be_silent(int64_t agent) { silent_.insert(agent); }
  void be_heard(int64_t agent) { silent_.erase(agent); }
  /// It does not answer what it is asked.
  void hang(int64_t agent) { hanging_.insert(agent); }
  /// What it says to what it is asked: why it does not fit.
  void answer(int64_t agent, std::function<std::string(const JoinAsk&)> why_not) {
    fits_[agent] = std::move(why_not);
  }
  AgentStatus& status(int64_t agent) { return agents_[agent]; }
  void set(int64_t agent, AgentState state) {
    agents_[agent].state = state;
    agents_[agent].has_stepped = state == AgentState::running;
    if (state == AgentState::running) agents_[agent].round = order().round;
  }
  void fail(int64_t agent, const std::string& message, int64_t time, bool by_peer = false,
            int exit_code = 1) {
    agents_[agent].end = {
        .outcome = {.exit_code = exit_code, .message = message, .caused_by_peer = by_peer},
        .time = time,
        .may_restart = exit_code != 2};
    set(agent, AgentState::failed);
  }
  /// By a signal, to this node or to another one's ranks.
  void stop(int64_t agent, int signal, bool is_told = true) {
    agents_[agent].end = {.outcome = {.exit_code = 128 + signal, .message = {}}};
    agents_[agent].is_told = is_told;
    set(agent, AgentState::stopped);
  }

  /// The members of a round start their ranks.
  void start() {
    for (const Member& member : std::vector(order().members))
      set(member.agent, AgentState::running);
  }

  /// The same, of nodes that are fewer than there may be.
  void start_after_last_call() {
    wait(std::chrono::seconds(31));
    start();
  }

  /// Every agent does what an agent does: halts, comes back.
  void obey() {
    for (auto& [agent, status] : agents_) {
      if (silent_.contains(agent)) continue;
      const bool runs = status.state == AgentState::running;
      if (order().kind == OrderKind::halt && runs) status.state = AgentState::halted;
      const bool returns = !runs && status.state != AgentState::joining;
      if (order().kind == OrderKind::gather && returns) status.state = AgentState::waiting;
    }
  }

  std::vector<int64_t> members() {
    std::vector<int64_t> numbers;
    for (const Member& member : order().members) numbers.push_back(member.agent);
    return numbers;
  }

 private:
  AgentSettings settings_;
  Coordinator::Clock::time_point now_{};
  Coordinator coordinator_;
  Agents agents_;
  std::set<int64_t> silent_;
  std::set<int64_t> hanging_;
  std::map<int64_t, std::function<std::string(const JoinAsk&)>> fits_;
};

/// The settings of a launch of so many nodes.
inline AgentSettings nodes(int64_t fewest, int64_t most, int64_t restarts = 0) {
  return {.min_nodes = fewest, .max_nodes = most, .max_restarts = restarts};
}

}  // namespace phalanx
