// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "trainer/launch/launcher.h"

namespace phalanx {

/// Runs ranks as processes of this host, forked from the calling one. The lines of ranks other than
/// 0 come out behind "[rank 1] "; rank 0 writes to this process's stdout and stderr itself. SIGINT,
/// SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to all ranks; SIGTSTP stops them with this
/// process, until it is continued. Ranks die with the calling process, however it dies.
class RankProcesses {
 public:
  static constexpr std::chrono::milliseconds kDefaultGrace{5000};

  /// `count` is at least 1. `node` is the place of this process among those of several nodes, each
  /// of which runs as many ranks; by default there is one node. `grace` is what the other ranks are
  /// given after one has failed: that long until SIGTERM, and again until SIGKILL.
  explicit RankProcesses(int64_t count, std::chrono::milliseconds grace = kDefaultGrace,
                         Environment node = {})
      : count_(count), grace_(grace), node_(std::move(node)) {}

  /// Returns when all ranks have ended; see verdict.h for the outcome. An exception out of
  /// `rank_main` is exit code 2 (UserError) or 1, with its message. Throws std::logic_error where
  /// this process has more than one thread, std::system_error where the system lacks something.
  RankOutcome run(const RankMain& rank_main) const;

 private:
  int64_t count_;
  std::chrono::milliseconds grace_;
  Environment node_;
};

}  // namespace phalanx
