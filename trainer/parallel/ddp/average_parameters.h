// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "trainer/api/optimizer.h"

namespace phalanx {

class Ranks;

/// Puts the mean over all ranks into each of these parameters
/// (torch/distributed/algorithms/model_averaging/utils.py: average_parameters). Takes the memory of
/// all of them once more. Every rank calls it.
void average_parameters(const std::vector<NamedParameter>& parameters, const Ranks& ranks);

}  // namespace phalanx
