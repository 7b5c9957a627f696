// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "trainer/launch/launcher.h"
#include "trainer/launch/output_pump.h"

namespace phalanx {

/// Where the output of a rank goes.
struct RankStreams {
  LineRoute out;
  LineRoute err;
};

/// What rank 0 of a run writes to is this process's own stdout and stderr, so that a terminal stays
/// one; the lines of the others come out behind "[rank 1] ".
RankStreams streams_to_console(int64_t rank);

/// The ranks of one host, as a Supervisor starts them.
struct RankGroup {
  int64_t count = 1;  ///< At least 1.
  /// The place of local rank 0; the others stand behind it.
  Environment first = {};
  /// No other host has ranks, and nobody serves their store: they meet over loopback.
  bool is_whole_world = true;
  /// What the other ranks are given after one has failed, until SIGTERM.
  std::chrono::milliseconds until_term = std::chrono::seconds(5);
  /// From there until SIGKILL.
  std::chrono::milliseconds until_kill = std::chrono::seconds(5);
  /// Where the output of a local rank goes; null: streams_to_console.
  std::function<RankStreams(int64_t local_rank)> streams = {};
  /// The ranks become programs, which report nothing: what the exit code of one says.
  std::function<RankOutcome(int64_t local_rank, int exit_code)> words_of = {};
};

}  // namespace phalanx
