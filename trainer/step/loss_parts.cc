// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/loss_parts.h"

#include <cstdint>
#include <span>

#include "trainer/ranks/ranks.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {

void sum_over_ranks(NamedValues& values, const Ranks& ranks) {
  if (ranks.is_single_rank()) return;
  const at::Tensor sums = tensors::empty({static_cast<int64_t>(values.size())}, at::kDouble);
  const std::span numbers(sums.mutable_data_ptr<double>(), values.size());
  for (size_t i = 0; i < values.size(); ++i) numbers[i] = values[i].second;
  ranks.all_reduce(sums);
  for (size_t i = 0; i < values.size(); ++i) values[i].second = numbers[i];
}

}  // namespace phalanx
