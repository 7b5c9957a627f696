// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Rank `source`'s number, on every rank.
int64_t broadcast_number(const Ranks& ranks, int64_t number, int64_t source = 0);

/// Every rank's numbers, as many on each, rank after rank.
std::vector<int64_t> all_gather_numbers(const Ranks& ranks, std::span<const int64_t> numbers);

/// The numbers of all ranks reduced, each with those at its index.
std::vector<int64_t> all_reduce_numbers(const Ranks& ranks, std::span<const int64_t> numbers,
                                        Reduction reduction);

}  // namespace phalanx
