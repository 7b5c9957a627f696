// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "trainer/topology/divide_cores.h"
#include "trainer/topology/numa_binding.h"

namespace phalanx {

/// Ranks of a host that may use the same cores, this process among them.
struct RanksOnCores {
  std::span<const int64_t> local_ranks;  ///< Ascending, as their launcher counts.
  int64_t local_rank = 0;                ///< This one, which is among them.
  /// Each computes on the GPU of its local rank, or on the one that it sees.
  bool on_gpus = false;
};

/// The cores of this process, as divide_cores divides those that it may use. `root` is where the
/// file system begins. Throws UserError.
RankCores cores_of_rank(NumaBinding binding, const RanksOnCores& ranks,
                        const std::filesystem::path& root = "/");

/// The same, and binds this process to them. Throws std::system_error, too.
RankCores bind_rank(NumaBinding binding, const RanksOnCores& ranks);

}  // namespace phalanx
