#pragma once

namespace phalanx {

/// SIGINT and SIGTERM ask a run to stop after the present step, with a checkpoint. A second
/// SIGINT ends the process at once.
class StopSignal {
 public:
  /// Installs the handlers for the process.
  static void install();
  /// The first signal received since `install`, or 0.
  static int received();
  /// Takes over the signal that another rank has got, where this one has none.
  static void adopt(int signal);
};

}  // namespace phalanx
