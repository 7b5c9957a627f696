// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// As Ranks::all_to_all, of one-dimensional tensors whose parts have so many elements, one number a
/// rank: what rank r sends here is as long as what this rank expects of it. On several ranks.
void uneven_all_to_all(const Ranks& ranks, const at::Tensor& output, const at::Tensor& input,
                       std::vector<int64_t> output_parts, std::vector<int64_t> input_parts);

}  // namespace phalanx
