// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <csignal>

namespace phalanx {

/// SIGTERM, SIGINT, SIGHUP and SIGUSR2 ask a run to stop after the present step, of several ranks
/// after the next one, with a checkpoint; within a validation after the present micro-batch. A
/// second SIGINT ends the process at once. SIGHUP is sent when a terminal closes; nohup has it
/// ignored. SIGUSR2 is for a job's manager that warns ahead of the end (Slurm:
/// `--signal=USR2@90`).
class StopSignal {
 public:
  static constexpr std::array kSignals = {SIGTERM, SIGINT, SIGUSR2, SIGHUP};

  /// Installs the handlers for the process; a SIGHUP that is ignored stays so.
  static void install();
  /// The first signal received since `install`, or 0.
  static int received();
  /// What to call before a second SIGINT ends the process, from the handler; nullptr: nothing.
  static void before_end_at_once(void (*action)());
  /// Has the handler call `tell` at the first signal of this process. It must be safe in a handler.
  static void when_first(void (*tell)());
  /// Takes over the signal that another rank has got, where this one has none.
  static void adopt(int signal);
};

}  // namespace phalanx
