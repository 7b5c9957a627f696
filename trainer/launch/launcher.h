// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "trainer/base/exit_codes.h"
#include "trainer/ranks/environment/environment.h"

namespace phalanx {

/// The most ranks that a node can have.
inline constexpr int64_t kMostRanksOfNode = 1 << 12;

/// What a rank's main function came to.
struct RankOutcome {
  /// 0, kFailure, kUsersMistake, kSignalBase + signal after a signal.
  int exit_code = 0;
  std::string message;  ///< What went wrong, one or more lines; empty when nothing did.
  /// It only met another rank's end (a closed connection), which is the cause.
  bool caused_by_peer = false;
  /// In a launcher's outcome of all ranks: the rank that is the cause, if one alone is. In a rank's
  /// own: another one that it has found to be the cause.
  std::optional<int64_t> rank = {};
  int signal = 0;  ///< The signal that killed the rank (of all ranks: that one), or 0.
  /// Of ranks that were asked to end and have not failed: why, "node b joins"; empty: by a signal.
  std::string reason = {};
  /// In a launcher's outcome of all ranks: the launcher on another host tells the end in the run's
  /// folder.
  bool told_elsewhere = false;

  bool operator==(const RankOutcome&) const = default;
};

/// What a rank does, given its place among the ranks.
using RankMain = std::function<RankOutcome(const Environment&)>;

/// Turns one process that a user has started into the ranks of a run.
class Launcher {
 public:
  virtual ~Launcher() = default;
  /// Runs `rank_main` in every rank of this host and waits for all of them. Returns the outcome of
  /// the whole: that of the rank which is the cause, its number before the message.
  virtual RankOutcome launch(const RankMain& rank_main) = 0;

  /// The place that others have given to this process among the ranks; nullopt: it was started
  /// alone, and `launch` starts the ranks. Throws UserError.
  virtual std::optional<Environment> environment() const { return find_environment(); }

  /// Runs `rank_main` at that place; in the only process of a node perhaps in all ranks of that
  /// node, which then count behind those of the nodes before it.
  virtual RankOutcome launch_at(const Environment& place, const RankMain& rank_main) {
    return rank_main(place);
  }

  /// What to call after each attempt but the last, where `launch` starts ranks that have failed
  /// again.
  virtual void when_attempt_fails(const std::function<void(const RankOutcome&)>& /*react*/) {}

  /// How many ranks `launch` will start; nullopt where that is not known beforehand.
  virtual std::optional<int64_t> processes() const { return std::nullopt; }
};

}  // namespace phalanx
