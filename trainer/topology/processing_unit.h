// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace phalanx {

/// A hardware thread, and what it is part of.
struct ProcessingUnit {
  int64_t index = 0;    ///< The kernel's number, as in /proc/cpuinfo.
  int64_t core = 0;     ///< Numbered through the host, from 0.
  int64_t cache = 0;    ///< The last-level cache, likewise.
  int64_t node = 0;     ///< The NUMA node, by the kernel's number.
  int64_t package = 0;  ///< The socket, from 0.

  bool operator==(const ProcessingUnit&) const = default;
};

/// In the order of their index.
using ProcessingUnits = std::vector<ProcessingUnit>;

/// Cores that the units are part of: two hardware threads of one core count once.
int64_t count_cores(std::span<const ProcessingUnit> units);

/// Different values of a field, ascending: distinct(units, &ProcessingUnit::node).
std::vector<int64_t> distinct(std::span<const ProcessingUnit> units,
                              int64_t ProcessingUnit::*field);

/// "0-3,8: 5 cores of NUMA node 0", or "0-7,16-23: 8 cores of NUMA nodes 0, 1".
std::string describe(std::span<const ProcessingUnit> units);

}  // namespace phalanx
