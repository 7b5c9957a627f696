// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/sums_over_ranks.h"

#include <ATen/ops/cat.h>

#include <cstdint>

namespace phalanx {

void SumsOverRanks::reduce(const Ranks& ranks) {
  if (values_.empty()) return;
  std::vector<at::Tensor> flat;
  for (const at::Tensor& values : values_) flat.push_back(values.reshape({-1}));
  const at::Tensor all = at::cat(flat);
  ranks.all_reduce(all);
  int64_t begin = 0;
  for (const at::Tensor& values : values_) {
    values.copy_(all.narrow(0, begin, values.numel()).view(values.sizes()));
    begin += values.numel();
  }
  values_.clear();
}

}  // namespace phalanx
