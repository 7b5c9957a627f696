// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trainer/topology/numa_binding.h"
#include "trainer/topology/processing_unit.h"

namespace phalanx {

/// What a rank runs on.
struct RankCores {
  ProcessingUnits units;
  int64_t ranks = 1;      ///< That run on the same units, itself among them.
  bool is_bound = false;  ///< To fewer than were there to divide.
};

/// Divides units among ranks that may all use them: for each rank its cores, in their order.
/// `gpu_nodes` has the NUMA node of each rank's GPU, nullopt for a rank without one or where that
/// is unknown: then all ranks count as without. node, socket, exclusive and core_complex divide
/// them as torch/numa/binding.py does. Throws UserError for a node none of whose cores are among
/// the units, and for more exclusive ranks than cores.
std::vector<RankCores> divide_cores(const ProcessingUnits& units, NumaBinding binding,
                                    std::span<const std::optional<int64_t>> gpu_nodes);

}  // namespace phalanx
