// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/launch/launcher.h"

namespace phalanx {

/// How the ranks of a node ended.
struct NodeEnd {
  RankOutcome outcome;
  int64_t time = 0;         ///< Milliseconds since 1970: the earliest is the cause.
  bool may_restart = true;  ///< Not after a mistake of the user.

  bool operator==(const NodeEnd&) const = default;
};

/// What a node that comes is asked: whether the run can go on with it.
struct JoinAsk {
  std::vector<int64_t> ranks_of_nodes;  ///< With it, the last one; empty: no rank runs yet.
  int64_t samples_a_step = 0;           ///< The run's; 0: not known.

  bool operator==(const JoinAsk&) const = default;
};

/// What an agent says of itself, in the store.
struct AgentStatus {
  /// What its ranks do. `waiting`: it has none, and wants to take part in the next round.
  /// `joining`: it has come, and has not found yet whether it can.
  enum class State { waiting, running, finished, failed, stopped, halted, left, joining };

  std::string node;        ///< Its name.
  std::string version;     ///< Its program's: all have the same.
  int64_t ranks = 1;       ///< How many it starts.
  int64_t node_rank = -1;  ///< -1: any.
  int64_t min_nodes = 1;   ///< As its --nnodes says.
  int64_t max_nodes = 1;
  int64_t beat = 0;  ///< Another one each time: it lives.
  State state = State::waiting;
  int64_t round = 0;  ///< The one that it runs, or ran last.
  NodeEnd end;        ///< How its ranks ended, where they have failed or were stopped.
  /// Of `stopped`: the signal came to this node, not to another one's ranks.
  bool is_told = false;
  bool has_stepped = false;         ///< Its ranks have finished a step in this round.
  int64_t samples_a_step = 0;       ///< Of its ranks; 0: not known.
  std::optional<JoinAsk> answered;  ///< What it was asked last, and has found an answer to.
  std::string unfit;                ///< That answer, where the run cannot go on with it: why.

  bool operator==(const AgentStatus&) const = default;
};

/// A node of a round.
struct Member {
  int64_t agent = 0;
  int64_t ranks = 1;

  bool operator==(const Member&) const = default;
};

/// What the coordinator tells all agents, in the store.
struct Order {
  /// `gather`: come; `run`: start ranks; `halt`: end them; `end`: leave with `outcome`.
  enum class Kind { gather, run, halt, end };

  Kind kind = Kind::gather;
  int64_t round = 0;                       ///< From 1 on: how often ranks were started.
  std::vector<Member> members;             ///< The round's nodes, by group rank.
  RankOutcome outcome;                     ///< The run's; in `gather` and `halt` the cause.
  std::string reason;                      ///< Why ranks end that have not failed: a node joins.
  int64_t lacking = 0;                     ///< In `gather`: nodes that have not come.
  double delay = 0;                        ///< In `gather`: seconds until the restart.
  std::map<int64_t, std::string> refused;  ///< Agents that cannot take part, and why.
  std::map<int64_t, JoinAsk> asked;        ///< Agents that have come.
  /// Lines for the screens of all nodes: the newest, and how many there were.
  std::vector<std::string> news;
  int64_t news_count = 0;

  bool operator==(const Order&) const = default;
};

/// As JSON. `status_in` and `order_in` throw std::exception for other texts.
std::string to_text(const AgentStatus& status);
std::string to_text(const Order& order);
AgentStatus status_in(const std::string& text);
Order order_in(const std::string& text);

}  // namespace phalanx
