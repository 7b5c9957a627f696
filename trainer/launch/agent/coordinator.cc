// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace phalanx {
namespace {

using State = AgentStatus::State;
using Seconds = std::chrono::duration<double>;

constexpr int64_t kLongestBackOff = 60;  // seconds

double seconds(std::chrono::milliseconds time) { return Seconds(time).count(); }

// 1, 2, 4, … seconds: what fails at once must not be started again and again.
std::chrono::seconds back_off(int64_t restart) {
  const int64_t doubled = int64_t{1} << std::min<int64_t>(restart - 1, 6);
  return std::chrono::seconds(std::min(doubled, kLongestBackOff));
}

bool has_ended(const AgentStatus& status) { return status.state != State::running; }

// The cause: what a rank did by itself, and of that the earliest.
const NodeEnd& cause_of(const std::map<int64_t, NodeEnd>& failures) {
  return std::ranges::min_element(
             failures,
             [](const auto& a, const auto& b) {
               return std::pair(a.second.outcome.caused_by_peer, a.second.time) <
                      std::pair(b.second.outcome.caused_by_peer, b.second.time);
             })
      ->second;
}

}  // namespace

Coordinator::Coordinator(const AgentSettings& settings, int64_t server, Clock::time_point now)
    : settings_(settings), server_(server), gathers_since_(now), not_before_(now) {
  order_.lacking = settings_.max_nodes;
}

const Order& Coordinator::decide(const Agents& agents, Clock::time_point now) {
  listen(agents, now);
  if (order_.kind != Order::Kind::end) refuse_strangers(agents, now);
  switch (order_.kind) {
    case Order::Kind::gather:
      gather(agents, now);
      break;
    case Order::Kind::run:
    case Order::Kind::halt:
      watch(agents, now);
      break;
    case Order::Kind::end:
      break;
  }
  return order_;
}

void Coordinator::listen(const Agents& agents, Clock::time_point now) {
  for (const auto& [agent, status] : agents) {
    Beat& beat = beats_.try_emplace(agent, Beat{status.beat, now, now}).first->second;
    if (beat.number != status.beat) beat = {status.beat, beat.first, now};
  }
}

bool Coordinator::is_silent(int64_t agent, Clock::time_point now) const {
  return now - beats_.at(agent).last > settings_.keep_alive_timeout;
}

bool Coordinator::is_alone(const Agents& agents, Clock::time_point now) const {
  return std::ranges::none_of(agents, [&](const auto& agent) {
    return agent.first != server_ && agent.second.state != State::left &&
           !order_.refused.contains(agent.first) && !is_silent(agent.first, now);
  });
}

bool Coordinator::is_member(int64_t agent) const { return members_.contains(agent); }

// An agent that was killed may look alive for a while: the one that comes after it is heard alone.
bool Coordinator::replaces(int64_t agent, int64_t earlier) const {
  return beats_.at(earlier).last <= beats_.at(agent).first;
}

std::string Coordinator::name_of(size_t group_rank, const Agents& agents) const {
  const auto found = agents.find(order_.members[group_rank].agent);
  return fmt::format("node {} ({})", group_rank,
                     found == agents.end() ? "unknown" : found->second.node);
}

// ---- Until enough nodes are there

void Coordinator::gather(const Agents& agents, Clock::time_point now) {
  for (const auto& [agent, status] : agents) {
    const bool counts = agent == server_ || is_member(agent);
    if (counts && status.state == State::stopped) return end(status.end.outcome);
  }
  const std::vector<int64_t> present = candidates(agents, now);
  const int64_t count = std::ssize(present);
  order_.lacking = settings_.max_nodes - count;
  if (count < settings_.min_nodes) enough_since_.reset();
  if (count >= settings_.min_nodes && !enough_since_) enough_since_ = now;
  if (now < not_before_) return;
  const bool is_last_call_over =
      enough_since_ && now - *enough_since_ >= settings_.last_call_timeout;
  if (order_.lacking == 0 || is_last_call_over) return begin(present, agents);
  if (enough_since_ || now - gathers_since_ < settings_.join_timeout) return;
  end({.exit_code = order_.round == 0 ? kUsersMistake : kFailure,
       .message = fmt::format("after {} s {} of {} nodes have come to {}:{}. Are the others "
                              "started, with the same endpoint and --nnodes?",
                              seconds(settings_.join_timeout), count, settings_.min_nodes,
                              settings_.host, settings_.port)});
}

// By node rank, where they have one; at most max_nodes.
std::vector<int64_t> Coordinator::candidates(const Agents& agents, Clock::time_point now) const {
  std::map<std::pair<int64_t, int64_t>, int64_t> present;  // by node rank, or as they came
  for (const auto& [agent, status] : agents) {
    const bool is_ready = status.state == State::waiting && !order_.refused.contains(agent);
    if (!is_ready || is_silent(agent, now)) continue;
    present[{status.node_rank, status.node_rank < 0 ? agent : 0}] = agent;
  }
  std::vector<int64_t> members;
  for (const auto& [place, agent] : present) {
    if (std::ssize(members) < settings_.max_nodes) members.push_back(agent);
  }
  return members;
}

// Agents that can never take part: they would wait for ever, or halt a run that they cannot join.
void Coordinator::refuse_strangers(const Agents& agents, Clock::time_point now) {
  const auto is_gone = [&](int64_t agent) {
    return agents.at(agent).state == State::left || is_silent(agent, now);
  };
  std::map<int64_t, int64_t> taken;  // node rank to agent: those who run keep theirs
  for (const Member& member : order_.members) {
    const int64_t node_rank = agents.at(member.agent).node_rank;
    if (node_rank >= 0 && !is_gone(member.agent)) taken[node_rank] = member.agent;
  }
  for (const auto& [agent, status] : agents) {
    if (is_member(agent) || is_gone(agent) || order_.refused.contains(agent)) continue;
    std::string why = why_refused(status, agents.at(server_));
    if (why.empty() && status.node_rank >= 0) {
      const auto [place, is_free] = taken.try_emplace(status.node_rank, agent);
      if (is_free || replaces(agent, place->second)) {
        place->second = agent;
      } else {
        why = fmt::format("--node-rank {} is taken by {}", status.node_rank,
                          agents.at(place->second).node);
      }
    }
    if (!why.empty()) order_.refused[agent] = std::move(why);
  }
}

std::string Coordinator::why_refused(const AgentStatus& status, const AgentStatus& server) const {
  if (status.version != server.version) {
    return fmt::format(
        "this is version {} of the program, that of {} is {}: start the same on all nodes",
        status.version, server.node, server.version);
  }
  if ((status.node_rank >= 0) != (server.node_rank >= 0)) {
    return fmt::format("give --node-rank to all nodes or to none: {} has {}", server.node,
                       server.node_rank >= 0 ? "one" : "none");
  }
  if (status.node_rank >= settings_.max_nodes) {
    return fmt::format("--node-rank is {}, but --nnodes is {} on {}: they count from 0",
                       status.node_rank, settings_.max_nodes, server.node);
  }
  return {};
}

void Coordinator::begin(const std::vector<int64_t>& members, const Agents& agents) {
  order_.kind = Order::Kind::run;
  order_.round += 1;
  order_.lacking = 0;
  order_.outcome = {};
  order_.delay = 0;
  order_.members.clear();
  members_ = {members.begin(), members.end()};
  for (const int64_t agent : members) {
    order_.members.push_back({.agent = agent, .ranks = agents.at(agent).ranks});
  }
  failures_.clear();
  enough_since_.reset();
}

// ---- While ranks run, and until all have ended

void Coordinator::watch(const Agents& agents, Clock::time_point now) {
  note_ends(agents, now);
  if (all_have(agents, now, /*only_finished=*/true)) return end({});
  const std::vector<int64_t> present = candidates(agents, now);
  const bool may_grow =
      std::ssize(order_.members) < settings_.max_nodes &&
      std::ranges::any_of(present, [this](int64_t agent) { return !is_member(agent); });
  const bool is_over = stopped_ || !failures_.empty() || may_grow;
  if (order_.kind == Order::Kind::run && is_over) {
    order_.kind = Order::Kind::halt;
    if (!failures_.empty()) order_.outcome = cause_of(failures_).outcome;
  }
  if (order_.kind == Order::Kind::halt && all_have(agents, now, false)) conclude(now);
}

void Coordinator::note_ends(const Agents& agents, Clock::time_point now) {
  if (const AgentStatus& server = agents.at(server_); server.state == State::stopped) {
    stopped_ = server.end.outcome;
  }
  for (size_t i = 0; i < order_.members.size(); ++i) {
    const int64_t agent = order_.members[i].agent;
    const AgentStatus& status = agents.at(agent);
    const bool is_of_round = status.round == order_.round;
    if (is_of_round && status.state == State::failed) failures_[agent] = status.end;
    // Between two rounds, a signal finds it without ranks of this one.
    if (status.state == State::stopped) stopped_ = status.end.outcome;
    const bool has_left = status.state == State::left;
    const bool is_lost = has_left || (is_silent(agent, now) && !has_ended(status));
    if (!is_lost || failures_.contains(agent)) continue;
    const std::string how = has_left ? std::string("ended and gave no reason")
                                     : fmt::format("gave no sign of life for {} s",
                                                   seconds(settings_.keep_alive_timeout));
    failures_[agent] = {
        .outcome = {.exit_code = kFailure, .message = name_of(i, agents) + " " + how},
        .time = 0,  // It went silent before the others noticed.
        .may_restart = true};
  }
}

// Whether all members have ended the round: with success alone, or in any way.
bool Coordinator::all_have(const Agents& agents, Clock::time_point now, bool only_finished) const {
  return std::ranges::all_of(order_.members, [&](const Member& member) {
    const AgentStatus& status = agents.at(member.agent);
    const bool is_of_round = status.round == order_.round;
    if (only_finished) return is_of_round && status.state == State::finished;
    return (is_of_round && has_ended(status)) || status.state == State::stopped ||
           is_silent(member.agent, now);
  });
}

void Coordinator::conclude(Clock::time_point now) {
  if (stopped_) return end(*stopped_);
  order_.kind = Order::Kind::gather;
  gathers_since_ = now;
  not_before_ = now;
  if (failures_.empty()) {  // more nodes than before: the ranks have saved and ended
    order_.outcome = {.exit_code = kSignalBase + SIGTERM, .message = {}};
    return;
  }
  const NodeEnd& cause = cause_of(failures_);
  if (!cause.may_restart || restarts_ == settings_.max_restarts) return end(cause.outcome);
  const auto delay = back_off(++restarts_);
  not_before_ = now + delay;
  order_.outcome = cause.outcome;
  order_.delay = Seconds(delay).count();
}

void Coordinator::end(RankOutcome outcome) {
  order_.kind = Order::Kind::end;
  order_.outcome = std::move(outcome);
}

}  // namespace phalanx
