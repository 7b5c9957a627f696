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

/// Throws on all ranks alike where the norm of the gradients is not finite, and one of the ranks
/// knows why: by its loss (`loss_problem`) or by a parameter's gradient. Every rank calls it, with
/// the same norm, before the optimizer moves anything. A loss that is not finite where the norm is
/// (nothing depends on it) ends this rank, and the others by its absence.
void refuse_nonfinite(const std::string& loss_problem, const at::Tensor& norm,
                      const std::vector<NamedParameter>& parameters, const Ranks& ranks);

}  // namespace phalanx
