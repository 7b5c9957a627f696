// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/launch/launcher.h"
#include "trainer/launch/report.h"

namespace phalanx {

/// How a rank's process ended.
struct RankEnd {
  int status = 0;                    ///< As waitpid gives it.
  std::optional<RankReport> report;  ///< What it said before, if anything.
  LaunchClock::time_point time;      ///< The report's, else when the launcher learnt of the end.
  /// The launcher had told it to end by then, because of another rank's end.
  bool told_to_end = false;
  /// It was killed by a signal which the launcher was sent and passed on.
  bool killed_by_relayed_signal = false;
};

/// Whether the other ranks cannot go on after this end. They can after success, and after a rank
/// that stopped by itself because a signal asked for it: the others then stop as well, each in its
/// time. A rank that was killed, by such a signal too, breaks the run.
bool breaks_the_run(const RankEnd& end);

/// Whether no rank failed but those that the launcher had told to end.
bool ended_as_told(const std::vector<RankEnd>& ends);

/// Which of the ranks is the cause of a failed or stopped run, see `verdict`; nullopt after
/// success.
std::optional<size_t> cause_of(const std::vector<RankEnd>& ends);

/// The outcome of a run whose ranks ended so, by rank. Its cause is the earliest end of the first
/// of these kinds: one that a rank brought about by itself (it reported so, was killed, or left
/// without a report); an exit code that its main function returned; a stop that a signal asked for;
/// the end of a rank that met another one's end; that of a rank that the launcher had told to end.
/// The message names the rank and what it said. It names no rank where all that failed by
/// themselves say the same, and is empty where a signal ended the run, an exit code was returned,
/// or the rank ended as it was told. The ends are those of ranks `first_rank` on, on the host of
/// this name.
RankOutcome verdict(const std::vector<RankEnd>& ends, int64_t first_rank, const std::string& host);

}  // namespace phalanx
