#pragma once

#include <vector>

#include "trainer/core/ranks.h"
#include "trainer/core/sharded_tensor_view.h"

namespace phalanx {

/// Brings the parts of tensors together on rank 0, which gets views of whole tensors, with copies
/// of what it did not hold whole; the other ranks get none. All ranks call it, with views of the
/// same tensors in the same order, whose parts cover them. Rank 0 needs the memory for all of them.
std::vector<ShardedTensorView> gather_on_first_rank(const Ranks& ranks,
                                                    std::vector<ShardedTensorView> views);

}  // namespace phalanx
