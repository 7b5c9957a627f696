// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace phalanx {

class Ranks;

/// What a guard judges a step by.
struct GuardedValues {
  double loss = 0;
  double grad_norm = 0;
};

/// The loss of all ranks, out of this rank's parts of it, and the mean of their gradient norms: the
/// same bits on all ranks, whatever each computes with. One exchange of two numbers. Waits for the
/// loss. Every rank calls it.
GuardedValues guarded_values(const std::vector<std::pair<std::string, at::Tensor>>& loss_parts,
                             double norm, const Ranks& ranks);

}  // namespace phalanx
