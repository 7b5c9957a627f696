// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// What an action costs a rank.
struct Cost {
  double seconds = 0;      ///< Wall time, until it has ended here.
  double cpu_seconds = 0;  ///< The CPU time of all threads.
  double extra_mib = 0;    ///< Resident memory at its peak, above what there was before.
};

/// Runs the action on this rank, which begins it when all have come.
Cost measure_cost(const Ranks& ranks, const std::function<void()>& action);

/// Takes so much memory from the system and gives it back. A virtual machine may have to ask its
/// host for memory that it has not used for a while, which takes longer than to write it to a disk:
/// what is measured next finds some that is there.
void settle_memory(uint64_t bytes);

}  // namespace phalanx
