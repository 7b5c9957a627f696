// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/launch/agent/agent_messages.h"

namespace phalanx {

/// A launch of one or several nodes, as the first of them has begun it.
struct LaunchFacts {
  std::string job;       ///< "3f2a90c4 at node0:29400 on host-0": the same on all of its nodes.
  std::string node;      ///< The name of the node that serves the store.
  std::string launched;  ///< Launched::description there.
};

/// What the process of a meeting tells its agent once it has met the others.
struct JoinedWord {
  int64_t number = -1;  ///< The agent's.
  LaunchFacts facts;
};
std::string to_text(const JoinedWord& word);
JoinedWord joined_word_in(const std::string& text);

/// How far the ranks of a node have come in a round.
struct RoundProgress {
  bool has_stepped = false;    ///< A step is finished.
  int64_t samples_a_step = 0;  ///< 0: not known.
};

/// What an agent has to know of what it launches.
struct Launched {
  /// What is launched, for the nodes that come.
  std::string description;
  /// Why the launch cannot go on with this node; empty where it can. Called on the node that comes,
  /// while ranks of others may train.
  std::function<std::string(const LaunchFacts&, const JoinAsk&)> why_not;
  /// Safe to call from any process that was forked since it was made.
  std::function<RoundProgress()> progress;
};

/// A program, whose steps nobody knows. Nodes of a number that may change have to start the same
/// words: each of them may be rank 0.
Launched launched_program(const std::vector<std::string>& words, bool is_elastic);

}  // namespace phalanx
