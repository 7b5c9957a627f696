// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// From now on the first signal to stop says on rank 0's terminal what the run finishes first
/// (StopWait), and how to end it at once; it says nothing where nobody looks.
void announce_stops(const Ranks& ranks);

}  // namespace phalanx
