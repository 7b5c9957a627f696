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
};

}  // namespace phalanx
