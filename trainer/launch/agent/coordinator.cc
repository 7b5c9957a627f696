// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/coordinator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <utility>

#include "trainer/launch/agent/endpoint.h"

namespace phalanx {
namespace {

using State = AgentStatus::State;
using Seconds = std::chrono::duration<double>;

constexpr int64_t kLongestBackOff = 60;  // seconds
constexpr size_t kNewsKept = 16;         // more come at once in no launch that people watch

double seconds(std::chrono::milliseconds time) { return Seconds(time).count(); }

// 1, 2, 4, … seconds: what fails at once must not be started again and again.
std::chrono::seconds back_off(int64_t restart) {
  const int64_t doubled = int64_t{1} << std::min<int64_t>(restart - 1, 6);
  return std::chrono::seconds(std::min(doubled, kLongestBackOff));
}

std::string count_of(int64_t nodes) {
  return fmt::format("{} node{}", nodes, nodes == 1 ? "" : "s");
}

// "node a joins", "nodes a and b join"
std::string deed(const std::vector<std::string>& nodes, std::string_view verb) {
  return nodes.size() == 1 ? fmt::format("node {} {}s", nodes.front(), verb)
                           : fmt::format("nodes {} {}", fmt::join(nodes, ", "), verb);
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
    : settings_(settings),
      server_(server),
      beats_(settings.keep_alive_timeout),
      newcomers_(settings, server),
      gathers_since_(now),
      not_before_(now) {
  order_.lacking = settings_.max_nodes;
}

const Order& Coordinator::decide(const Agents& agents, Clock::time_point now) {
  beats_.listen(agents, now);
  if (order_.kind != Order::Kind::end) look_at_newcomers(agents, now);
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

bool Coordinator::is_alone(const Agents& agents, Clock::time_point now) const {
  return std::ranges::none_of(agents, [&](const auto& agent) {
    return agent.first != server_ && agent.second.state != State::left &&
           !order_.refused.contains(agent.first) && !beats_.is_silent(agent.first, now);
  });
}

std::string Coordinator::name_of(size_t group_rank, const Agents& agents) const {
  const auto found = agents.find(order_.members[group_rank].agent);
  return fmt::format("node {} ({})", group_rank,
                     found == agents.end() ? "unknown" : found->second.node);
}

void Coordinator::announce(std::string line) {
  order_.news.push_back(std::move(line));
  if (order_.news.size() > kNewsKept) order_.news.erase(order_.news.begin());
  ++order_.news_count;
}

void Coordinator::look_at_newcomers(const Agents& agents, Clock::time_point now) {
  const bool may_ask = order_.kind == Order::Kind::gather || has_stepped(agents);
  newcomers_.look(agents, beats_, {.members = order_.members, .may_ask = may_ask}, now);
  for (const auto& [agent, why] : newcomers_.refused()) {
    if (order_.refused.contains(agent)) continue;
    if (agent == server_) return end({.exit_code = kUsersMistake, .message = why});
    announce(fmt::format("node {} is refused: {}", agents.at(agent).node, why));
  }
  order_.refused = newcomers_.refused();
  order_.asked = newcomers_.asked();
}

// ---- Until enough nodes are there

void Coordinator::gather(const Agents& agents, Clock::time_point now) {
  for (const auto& [agent, status] : agents) {
    const bool counts = agent == server_ || is_member(agent);
    // Without a word to this node, it is the end of the last round.
    if (!counts || status.state != State::stopped || !status.is_told) continue;
    if (agent == server_ || !is_elastic()) return end(status.end.outcome);
    leavers_.insert(agent);
  }
  if (!leavers_.empty()) dismiss_leavers(agents);
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
  give_up(count);
}

void Coordinator::give_up(int64_t count) {
  const std::string lost = lost_.empty() ? "" : lost_ + "; ";
  const std::string own_endpoint = why_others_cannot_come(settings_);
  const std::string why = own_endpoint.empty()
                              ? "Are the others started, with the same endpoint and --nnodes?"
                              : own_endpoint;
  end({.exit_code = order_.round == 0 ? kUsersMistake : kFailure,
       .message = fmt::format("{}after {} s (join_timeout of --rdzv-conf) {} of {} nodes have come "
                              "to {}:{}. {}",
                              lost, seconds(settings_.join_timeout), count, settings_.min_nodes,
                              settings_.host, settings_.port, why)});
}

// By node rank, where they have one; at most max_nodes.
std::vector<int64_t> Coordinator::candidates(const Agents& agents, Clock::time_point now) const {
  std::map<std::pair<int64_t, int64_t>, int64_t> present;  // by node rank, or as they came
  for (const auto& [agent, status] : agents) {
    const bool is_known = is_member(agent) && status.state == State::waiting;
    const bool is_ready = is_known || newcomers_.is_admitted(agent, status);
    if (!is_ready || order_.refused.contains(agent) || beats_.is_silent(agent, now)) continue;
    present[{status.node_rank, status.node_rank < 0 ? agent : 0}] = agent;
  }
  std::vector<int64_t> members;
  for (const auto& [place, agent] : present) {
    if (std::ssize(members) < settings_.max_nodes) members.push_back(agent);
  }
  return members;
}

void Coordinator::begin(const std::vector<int64_t>& members, const Agents& agents) {
  order_.kind = Order::Kind::run;
  order_.round += 1;
  order_.lacking = 0;
  order_.outcome = {};
  order_.reason.clear();
  order_.delay = 0;
  order_.members.clear();
  members_ = {members.begin(), members.end()};
  for (const int64_t agent : members) {
    order_.members.push_back({.agent = agent, .ranks = agents.at(agent).ranks});
  }
  failures_.clear();
  stopped_.clear();
  leavers_.clear();
  vanished_.clear();
  lost_.clear();
  enough_since_.reset();
}

// ---- While ranks run, and until all have ended

void Coordinator::watch(const Agents& agents, Clock::time_point now) {
  note_ends(agents, now);
  if (all_have(agents, now, /*only_finished=*/true)) return end({});
  const std::vector<int64_t> new_nodes = joining(agents, now);
  const bool is_over = !stopped_.empty() || !failures_.empty() || !new_nodes.empty();
  if (order_.kind == Order::Kind::run && is_over) {
    order_.kind = Order::Kind::halt;
    if (!failures_.empty()) {
      order_.outcome = cause_of(failures_).outcome;
    } else if (stopped_.empty()) {
      std::vector<std::string> names;
      for (const int64_t agent : new_nodes) names.push_back(agents.at(agent).node);
      order_.reason = deed(names, "join");
      announce(fmt::format("{}: the ranks save, and start again on {}", order_.reason,
                           count_of(std::ssize(order_.members) + std::ssize(names))));
    }
  }
  if (order_.kind == Order::Kind::halt && all_have(agents, now, false)) conclude(agents, now);
}

// Nodes for which the ranks are to make room now.
std::vector<int64_t> Coordinator::joining(const Agents& agents, Clock::time_point now) const {
  const int64_t room = settings_.max_nodes - std::ssize(order_.members);
  std::vector<int64_t> nodes;
  if (room <= 0 || !has_stepped(agents)) return nodes;
  for (const int64_t agent : candidates(agents, now)) {
    if (!is_member(agent) && std::ssize(nodes) < room) nodes.push_back(agent);
  }
  return nodes;
}

// A round that has just begun, and is halted again, would bring the run nothing.
bool Coordinator::has_stepped(const Agents& agents) const {
  return std::ranges::any_of(order_.members, [&](const Member& member) {
    const AgentStatus& status = agents.at(member.agent);
    return status.round == order_.round && status.has_stepped;
  });
}

void Coordinator::note_ends(const Agents& agents, Clock::time_point now) {
  if (const AgentStatus& server = agents.at(server_); server.state == State::stopped) {
    stopped_[server_] = server.end;
    if (server.is_told) leavers_.insert(server_);
  }
  for (size_t i = 0; i < order_.members.size(); ++i) {
    const int64_t agent = order_.members[i].agent;
    const AgentStatus& status = agents.at(agent);
    const bool is_of_round = status.round == order_.round;
    if (is_of_round && status.state == State::failed) failures_[agent] = status.end;
    // Between two rounds, a signal finds it without ranks of this one.
    if (status.state == State::stopped) {
      stopped_[agent] = status.end;
      if (status.is_told) leavers_.insert(agent);
    }
    if (stopped_.contains(agent)) continue;
    const bool has_left = status.state == State::left;
    const bool is_lost = has_left || (beats_.is_silent(agent, now) && !has_ended(status));
    if (!is_lost || failures_.contains(agent)) continue;
    const std::string how =
        has_left ? std::string(
                       "is lost: its launch process ended and gave no reason; if nobody killed it, "
                       "the kernel's out-of-memory killer did: see dmesg there")
                 : fmt::format("gave no sign of life for {} s{}",
                               seconds(settings_.keep_alive_timeout), kLongerSilence);
    vanished_.insert(agent);
    lost_ = name_of(i, agents) + " " + how;
    failures_[agent] = {.outcome = {.exit_code = kFailure, .message = lost_},
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
           beats_.is_silent(member.agent, now);
  });
}

void Coordinator::conclude(const Agents& agents, Clock::time_point now) {
  count_lost_as_leavers(agents);
  // No node was sent a signal: a launch that is lost has ended its own ranks by one, and all ranks
  // have obeyed.
  const bool is_stopped_by_loss = leavers_.empty() && !vanished_.empty();
  if (!stopped_.empty() && !is_stopped_by_loss && !goes_on_without_leavers(agents, now)) {
    return end(outcome_of_stop());
  }
  order_.kind = Order::Kind::gather;
  gathers_since_ = now;
  not_before_ = now;
  if (failures_.empty()) {  // other nodes than before: the ranks have saved and ended
    if (!leavers_.empty()) dismiss_leavers(agents);
    order_.outcome = {.exit_code = kSignalBase + SIGTERM, .message = {}, .reason = order_.reason};
    return;
  }
  const NodeEnd& cause = cause_of(failures_);
  if (!cause.may_restart || restarts_ == settings_.max_restarts) return end(cause.outcome);
  const auto delay = back_off(++restarts_);
  not_before_ = now + delay;
  order_.outcome = cause.outcome;
  order_.reason.clear();
  order_.delay = Seconds(delay).count();
}

// A node may be killed between the save that it has taken part in and its goodbye. Where all others
// have ended as they were asked to, by a signal to one of the nodes or for others that join, their
// ranks have saved with those of that node: it has left, and that is no failure.
void Coordinator::count_lost_as_leavers(const Agents& agents) {
  if (!is_elastic() || vanished_.empty() || failures_.size() != vanished_.size()) return;
  const bool was_asked = order_.outcome.message.empty();
  const bool have_saved = std::ranges::all_of(order_.members, [&](const Member& member) {
    if (vanished_.contains(member.agent)) return true;
    const AgentStatus& status = agents.at(member.agent);
    const bool ended_as_asked =
        status.state == State::stopped || (status.state == State::halted && was_asked);
    return ended_as_asked && status.end.outcome.message.empty();
  });
  if (!have_saved) return;
  leavers_.insert(vanished_.begin(), vanished_.end());
  failures_.clear();
  vanished_.clear();
  order_.outcome = {};
}

// What says why, or else is that of a node that the signal came to.
RankOutcome Coordinator::outcome_of_stop() const {
  const auto weight = [this](const auto& stop) {
    return std::pair(!stop.second.outcome.message.empty(), leavers_.contains(stop.first));
  };
  return std::ranges::max_element(stopped_, {}, weight)->second.outcome;
}

// A signal to some nodes of a launch whose number of nodes may change ends those alone. All others
// have saved with them.
bool Coordinator::goes_on_without_leavers(const Agents& agents, Clock::time_point now) const {
  if (!is_elastic() || leavers_.empty() || leavers_.contains(server_) || !failures_.empty()) {
    return false;
  }
  const auto stays = [&](const Member& member) {
    return !leavers_.contains(member.agent) && !beats_.is_silent(member.agent, now) &&
           agents.at(member.agent).state != State::left;
  };
  return std::ranges::count_if(order_.members, stays) >= settings_.min_nodes;
}

void Coordinator::dismiss_leavers(const Agents& agents) {
  std::vector<std::string> names;
  for (const int64_t agent : leavers_) names.push_back(agents.at(agent).node);
  std::erase_if(order_.members,
                [&](const Member& member) { return leavers_.contains(member.agent); });
  for (const int64_t agent : leavers_) members_.erase(agent);
  leavers_.clear();
  order_.reason = deed(names, "leave");
  announce(fmt::format(
      "{}: the ranks start again on {}, in {} s if no other node comes (last_call_timeout of "
      "--rdzv-conf)",
      order_.reason, count_of(std::ssize(order_.members)), seconds(settings_.last_call_timeout)));
}

void Coordinator::end(RankOutcome outcome) {
  order_.kind = Order::Kind::end;
  order_.outcome = std::move(outcome);
}

}  // namespace phalanx
