// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/any_rank.h"

#include <cstdint>
#include <span>

#include "trainer/ranks/collectives/numbers.h"

namespace phalanx {

std::function<bool(bool writes)> any_rank_of(const Ranks& ranks) {
  if (ranks.is_single_rank()) return {};
  return [ranks](bool writes) {
    const int64_t here = writes ? 1 : 0;
    return all_reduce_numbers(ranks, std::span(&here, 1), Reduction::maximum).front() == 1;
  };
}

}  // namespace phalanx
