// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/newcomers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace phalanx {
namespace {

using State = AgentStatus::State;

bool is_of(const std::vector<Member>& members, int64_t agent) {
  return std::ranges::find(members, agent, &Member::agent) != members.end();
}

bool is_gone(int64_t agent, const Agents& agents, const Heartbeats& beats,
             AgentClock::time_point now) {
  return agents.at(agent).state == State::left || beats.is_silent(agent, now);
}

// As --nnodes has it.
std::string bounds(int64_t fewest, int64_t most) {
  return fewest == most ? std::to_string(most) : fmt::format("{}:{}", fewest, most);
}

}  // namespace

Newcomers::Newcomers(const AgentSettings& settings, int64_t server)
    : settings_(settings), server_(server) {}

void Newcomers::look(const Agents& agents, const Heartbeats& beats, const Round& round,
                     AgentClock::time_point now) {
  for (const Member& member : round.members) {
    const int64_t samples = agents.at(member.agent).samples_a_step;
    if (samples > 0) samples_a_step_ = samples;
  }
  refuse(agents, beats, round, now);
  if (round.may_ask) ask(agents, beats, round, now);
}

bool Newcomers::is_admitted(int64_t agent, const AgentStatus& status) const {
  return has_answered(agent, status) && status.state == State::waiting && status.unfit.empty() &&
         !refused_.contains(agent);
}

// Agents that can never take part: they would wait for ever, or halt a run that they cannot join.
void Newcomers::refuse(const Agents& agents, const Heartbeats& beats, const Round& round,
                       AgentClock::time_point now) {
  std::map<int64_t, int64_t> taken;  // node rank to agent: those who run keep theirs
  for (const Member& member : round.members) {
    const int64_t node_rank = agents.at(member.agent).node_rank;
    if (node_rank >= 0 && !is_gone(member.agent, agents, beats, now)) {
      taken[node_rank] = member.agent;
    }
  }
  for (const auto& [agent, status] : agents) {
    if (is_of(round.members, agent) || is_gone(agent, agents, beats, now)) continue;
    if (refused_.contains(agent)) continue;
    std::string why = why_refused(status, agents.at(server_));
    if (why.empty() && has_answered(agent, status)) why = status.unfit;
    if (why.empty() && hangs(agent, status, now)) {
      why = fmt::format(
          "it has not found in {} s whether it fits the run (join_timeout of --rdzv-conf)",
          std::chrono::duration<double>(settings_.join_timeout).count());
    }
    if (why.empty() && status.node_rank >= 0) {
      const auto [place, is_free] = taken.try_emplace(status.node_rank, agent);
      if (is_free || beats.replaces(agent, place->second)) {
        place->second = agent;
      } else {
        why = fmt::format("--node-rank {} is taken by {}: give each node its own", status.node_rank,
                          agents.at(place->second).node);
      }
    }
    if (!why.empty()) refused_[agent] = std::move(why);
  }
}

std::string Newcomers::why_refused(const AgentStatus& status, const AgentStatus& server) const {
  if (status.version != server.version) {
    return fmt::format(
        "this is version {} of the program, that of {} is {}: start the same on all nodes",
        status.version, server.node, server.version);
  }
  if (status.min_nodes != server.min_nodes || status.max_nodes != server.max_nodes) {
    return fmt::format("--nnodes is {} on {} and {} on {}: give all nodes the same",
                       bounds(status.min_nodes, status.max_nodes), status.node,
                       bounds(server.min_nodes, server.max_nodes), server.node);
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

// What it was asked last: nodes that have come or gone since may have changed the question.
bool Newcomers::has_answered(int64_t agent, const AgentStatus& status) const {
  const auto ask = asked_.find(agent);
  return ask != asked_.end() && status.answered == ask->second;
}

// It would keep its place from others.
bool Newcomers::hangs(int64_t agent, const AgentStatus& status, AgentClock::time_point now) const {
  const auto since = asked_since_.find(agent);
  return asked_.contains(agent) && !has_answered(agent, status) && since != asked_since_.end() &&
         now - since->second > settings_.join_timeout;
}

// Those that came first are part of what the next ones are asked.
void Newcomers::ask(const Agents& agents, const Heartbeats& beats, const Round& round,
                    AgentClock::time_point now) {
  JoinAsk with{.ranks_of_nodes = {}, .samples_a_step = samples_a_step_};
  for (const Member& member : round.members) {
    if (!is_gone(member.agent, agents, beats, now)) with.ranks_of_nodes.push_back(member.ranks);
  }
  for (const auto& [agent, status] : agents) {
    const bool comes = status.state == State::joining || status.state == State::waiting;
    if (is_of(round.members, agent) || !comes || refused_.contains(agent) ||
        beats.is_silent(agent, now)) {
      asked_.erase(agent);
      continue;
    }
    JoinAsk own;
    if (!round.members.empty()) {
      own = with;
      // One too many takes the place of a node that is lost later.
      const bool is_spare = std::ssize(with.ranks_of_nodes) >= settings_.max_nodes;
      if (!is_spare) own.ranks_of_nodes.push_back(status.ranks);
    }
    const auto asked = asked_.find(agent);
    if (asked == asked_.end() || asked->second != own) asked_since_[agent] = now;
    asked_[agent] = own;
    if (is_admitted(agent, status)) with = own;
  }
}

}  // namespace phalanx
