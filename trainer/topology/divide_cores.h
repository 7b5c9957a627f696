// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trainer/topology/numa_binding.h"
#include "trainer/topology/processing_unit.h"

namespace phalanx {

/// A rank, by what its cores depend on.
struct RankGpu {
  int64_t local_rank = 0;
  /// The NUMA node of its GPU; nullopt: it has none, or that is unknown.
  std::optional<int64_t> node = {};
};

/// What a rank runs on.
struct RankCores {
  ProcessingUnits units;
  int64_t ranks = 1;      ///< How many run on the same units, itself among them.
  bool is_bound = false;  ///< To fewer than were there to divide.
};

/// Divides units among ranks that may all use them: for each rank its cores, in their order. Where
/// the GPU's node of one rank is unknown, all count as ranks without a GPU. node, socket, exclusive
/// and core_complex divide the units as torch/numa/binding.py does. Throws UserError for a node
/// none of whose cores are among the units, and for more exclusive ranks than cores.
std::vector<RankCores> divide_cores(const ProcessingUnits& units, NumaBinding binding,
                                    std::span<const RankGpu> ranks);

}  // namespace phalanx
