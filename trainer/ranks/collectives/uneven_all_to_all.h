// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// As Ranks::all_to_all, in parts of so many rows along the first dimension, one number a rank:
/// what rank r sends here is as long as what this rank expects of it. Throws std::invalid_argument
/// where the parts of a tensor are not its rows, or not one for each rank.
void uneven_all_to_all(const Ranks& ranks, const at::Tensor& output, const at::Tensor& input,
                       std::vector<int64_t> output_parts, std::vector<int64_t> input_parts);
Pending start_uneven_all_to_all(const Ranks& ranks, const at::Tensor& output,
                                const at::Tensor& input, std::vector<int64_t> output_parts,
                                std::vector<int64_t> input_parts);

}  // namespace phalanx
