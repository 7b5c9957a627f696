// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/parallel/init_from_env.h"
#include "trainer/topology/numa_binding.h"

namespace phalanx {

/// Binds this rank to its cores, and gives LibTorch as many threads as OMP_NUM_THREADS says, or
/// its share of the cores. A single rank on the CPU without a binding is left to LibTorch. All
/// ranks call it: the first one warns, on standard error, of those that have more threads than
/// cores. Throws UserError for a binding that this host cannot have, and for a variable that is no
/// number.
void take_cores(const World& world, NumaBinding binding, const std::filesystem::path& root = "/");

/// The warnings that tell what too_many_threads() has found on each rank, empty where nothing: each
/// text once.
std::vector<std::string> thread_warnings(const std::vector<std::string>& found);

}  // namespace phalanx
