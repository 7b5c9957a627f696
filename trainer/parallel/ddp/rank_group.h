// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"

namespace phalanx {

/// The group of ranks that a rank shares its values with, among the groups that all ranks make up.
struct RankGroup {
  int64_t index = 0;
  int64_t count = 1;             ///< Groups.
  std::vector<int64_t> members;  ///< Ranks, ascending.
};

/// A whole tensor as a checkpoint keeps it where each group has values of its own: with one more
/// dimension, the first, of the groups.
ShardedTensorView of_group(ShardedTensorView view, const RankGroup& group);

}  // namespace phalanx
