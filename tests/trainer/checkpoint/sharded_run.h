// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/checkpoint/save/save.h"

namespace phalanx {

/// Elements [begin, end) of a tensor whose elements are their own numbers.
ShardedTensorView part(std::string name, int64_t size, int64_t begin, int64_t end,
                       std::vector<int64_t> replicas);

/// What rank of so many holds of it.
ShardedTensorView nth(std::string name, int64_t size, int64_t rank, int64_t ranks);

/// A run of so many ranks, each of which holds a part of a tensor.
Snapshot snapshot_of(int64_t step, int64_t rank, int64_t ranks);

}  // namespace phalanx
