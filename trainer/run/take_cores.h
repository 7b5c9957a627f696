// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/parallel/init_from_env.h"
#include "trainer/topology/numa_binding.h"

namespace phalanx {

/// Binds this rank to its cores, and gives LibTorch as many threads as OMP_NUM_THREADS says, or
/// its share of the cores. A single rank on the CPU without a binding is left to LibTorch. The
/// first rank warns of more threads than cores. Throws UserError for a binding that this host
/// cannot have.
void take_cores(const World& world, NumaBinding binding);

}  // namespace phalanx
