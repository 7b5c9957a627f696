// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "trainer/api/optimizer.h"

namespace phalanx {

class Ranks;

/// The first of a loss's parts that is NaN or infinite, in words; empty: none is.
std::string nonfinite_loss(const std::vector<std::pair<std::string, at::Tensor>>& parts);

/// The first parameter whose gradient is not finite, in words; empty: their norm is.
std::string nonfinite_gradient(const at::Tensor& norm,
                               const std::vector<NamedParameter>& parameters);

/// Throws on all ranks alike where one of them has found something: none goes on without the
/// others. Every rank calls it, before the optimizer moves anything.
void refuse_nonfinite(const std::string& problem_here, const Ranks& ranks);

}  // namespace phalanx
