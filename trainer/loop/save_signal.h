// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

namespace phalanx {

/// SIGUSR1 asks a run for a checkpoint after the present step, of several ranks after the next one,
/// and to go on. Slurm sends it ahead of a job's end with `--signal=USR1@90`.
class SaveSignal {
 public:
  using Clock = std::chrono::steady_clock;

  /// Installs the handler for the process.
  static void install();
  /// When the last one came, where one has since this was last asked.
  static std::optional<Clock::time_point> take();
};

}  // namespace phalanx
