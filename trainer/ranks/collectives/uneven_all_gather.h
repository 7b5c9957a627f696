// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Every rank's `input` [n, ...], by rank, where n may differ and may be 0. The ranks exchange
/// their shapes first. Throws std::invalid_argument on all ranks where the dtypes or the further
/// dimensions of two differ: "all-gather: rank 0 has [2, 3] of Float and rank 1 [2, 4] of Float".
std::vector<at::Tensor> uneven_all_gather(const Ranks& ranks, const at::Tensor& input);

}  // namespace phalanx
