// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace phalanx {

/// A backend whose ranks first compare what they are about to do, through `exchange`, a second
/// backend of the same ranks for host memory. Compared are the collective, its dtypes and shapes,
/// its reduction, the rank that gives or gets all, and the rows that all-to-all moves between each
/// two ranks. Where they differ, each rank throws the same std::invalid_argument ("rank 0 calls
/// all-reduce (sum) of [2] of Float, and rank 1 all-reduce (sum) of [3] of Float"), and the group
/// can still be used. A collective then waits for all ranks to begin it. What two ranks send each
/// other is not compared. (PyTorch: ProcessGroupWrapper, by TORCH_DISTRIBUTED_DEBUG=DETAIL.)
c10::intrusive_ptr<c10d::Backend> checked(c10::intrusive_ptr<c10d::Backend> backend,
                                          c10::intrusive_ptr<c10d::Backend> exchange);

/// Whether PHALANX_CHECK_COLLECTIVES asks for it: 1, or 0 as without it. Throws UserError for
/// another value.
bool checks_collectives();

}  // namespace phalanx
