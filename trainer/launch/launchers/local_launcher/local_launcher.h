// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/config/tree/forward.h"
#include "trainer/launch/launcher.h"

namespace phalanx {

/// Ranks on this host. One runs in the calling process itself; more are forked from it, as
/// RankProcesses describes. In a process that others have started as one of several ranks it starts
/// none, except the other ranks of a node that has one such process.
class LocalLauncher : public Launcher {
 public:
  struct Config {
    std::optional<int64_t> processes = 1;

    static void describe(config::Schema<Config>& s);
  };

  explicit LocalLauncher(const Config& config) : processes_(config.processes) {}

  /// An exception of a single rank, which runs in place, goes to the caller.
  RankOutcome launch(const RankMain& rank_main) override;

  RankOutcome launch_at(const Environment& place, const RankMain& rank_main) override;

  std::optional<int64_t> processes() const override { return processes_; }

 private:
  std::optional<int64_t> processes_;
};

}  // namespace phalanx
