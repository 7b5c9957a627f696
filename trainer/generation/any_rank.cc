// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/any_rank.h"

#include <ATen/ops/empty.h>

namespace phalanx {

std::function<bool(bool writes)> any_rank_of(const Ranks& ranks) {
  if (ranks.is_single_rank()) return {};
  return [ranks](bool writes) {
    const at::Tensor told = at::empty({1}, at::kLong);
    auto* value = told.mutable_data_ptr<int64_t>();
    *value = writes ? 1 : 0;
    ranks.all_reduce(told, Reduction::maximum);
    return *value == 1;
  };
}

}  // namespace phalanx
