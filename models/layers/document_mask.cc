// SPDX-License-Identifier: Apache-2.0
#include "models/layers/document_mask.h"

#include <ATen/TensorOperators.h>

namespace phalanx {

at::Tensor document_mask(const at::Tensor& positions, int64_t queries) {
  const at::Tensor document = positions.eq(0).cumsum(-1);  // Its number in the sequence.
  const int64_t before = positions.size(-1) - queries;
  const at::Tensor of_queries = document.narrow(-1, before, queries);
  const at::Tensor same = of_queries.unsqueeze(-1).eq(document.unsqueeze(-2));
  return same.tril(before).unsqueeze(1);
}

}  // namespace phalanx
