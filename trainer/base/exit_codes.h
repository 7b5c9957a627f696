// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// Exit code of a run that failed, for any reason that is not the user's.
inline constexpr int kFailure = 1;
/// Exit code after a mistake in the command line, the config, the environment or the data.
inline constexpr int kUsersMistake = 2;

/// Plus the signal's number: the exit code of a process that ends because of a signal, as in
/// shells.
inline constexpr int kSignalBase = 128;

/// What a run ends with that a signal has stopped; of one that has finished the signal is 0.
constexpr int exit_code_after(int signal) { return signal == 0 ? 0 : kSignalBase + signal; }

}  // namespace phalanx
