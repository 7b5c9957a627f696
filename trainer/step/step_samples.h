// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/api/batch.h"

namespace phalanx {

class Ranks;

/// The numbers of the samples of each micro-batch; none of one that does not count.
std::vector<std::vector<int64_t>> numbers_of(std::span<const std::unique_ptr<Batch>> micro_batches);

/// "samples 3, 18, 7 and 9 more", the first ones by their numbers; empty where they are not known.
std::string samples_text(std::span<const std::vector<int64_t>> numbers);

/// "samples 3, 18, 7 on rank 0; ...": those of all ranks. Every rank calls it.
std::string samples_of_ranks(std::span<const std::vector<int64_t>> numbers, const Ranks& ranks);

}  // namespace phalanx
