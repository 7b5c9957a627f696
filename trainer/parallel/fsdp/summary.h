// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/parallel/fsdp/sharding_strategy.h"

namespace phalanx {

/// A unit as this rank holds it.
struct ShardedUnitSummary {
  std::string name;            ///< Empty: what lies outside the units.
  int64_t parameters = 0;      ///< Elements of the whole, without padding.
  int64_t whole_bytes = 0;     ///< While it is gathered.
  int64_t resident_bytes = 0;  ///< What this rank keeps of it at all times.
};

namespace fsdp {

/// "FULL_SHARD over 2 ranks", "HYBRID_SHARD over 2 x 4 ranks".
std::string describe(ShardingStrategy strategy, const Mesh& mesh);

/// A line for each run of equal neighbours: "h.0 and 11 more: 27.04 MiB of parameters whole, 13.52
/// MiB kept".
std::vector<std::string> describe(const std::vector<ShardedUnitSummary>& units);

}  // namespace fsdp
}  // namespace phalanx
