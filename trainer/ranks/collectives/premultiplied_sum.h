// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Every rank's values times its `factor`, added up, in place (NCCL's PreMulSum). NCCL alone has
/// it: throws std::invalid_argument for a tensor that Gloo would move.
Pending start_premultiplied_sum(const Ranks& ranks, const at::Tensor& tensor, double factor);

}  // namespace phalanx
