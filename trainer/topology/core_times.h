// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace phalanx {

/// What the kernel has counted for some hardware threads since it started, in seconds.
struct CoreTimes {
  double idle = 0;   ///< Nothing wanted to run there.
  double total = 0;  ///< With what ran there, or on the host of a virtual machine instead.
};

/// The times of these hardware threads in the text of /proc/stat, which counts in ticks. nullopt
/// where the text has not all of them.
std::optional<CoreTimes> core_times(std::string_view stat, std::span<const int64_t> units,
                                    double ticks_per_second);

/// What is known at a moment.
struct UseOfCores {
  double moment = 0;  ///< Seconds, of a clock that does not jump.
  CoreTimes times;    ///< Of all the cores.
  double own = 0;     ///< CPU seconds that this program has used on them.
};

/// How many of these cores other programs have left from one moment to the next, 0 to `cores`.
/// nullopt where the kernel does not count, or no time has passed.
std::optional<double> cores_left(const UseOfCores& before, const UseOfCores& after, int64_t cores);

}  // namespace phalanx
