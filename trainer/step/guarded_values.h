// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/batch.h"

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

/// "samples 3, 18, 7 on rank 0; ...", the first ones of each rank by their numbers; empty where
/// they are not known. Every rank calls it.
std::string samples_of_ranks(std::span<const std::unique_ptr<Batch>> micro_batches,
                             const Ranks& ranks);

}  // namespace phalanx
