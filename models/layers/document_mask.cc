// SPDX-License-Identifier: Apache-2.0
#include "models/layers/document_mask.h"

#include <ATen/TensorOperators.h>

namespace phalanx {

at::Tensor document_mask(const at::Tensor& positions) {
  const at::Tensor document = positions.eq(0).cumsum(-1);  // Its number in the sequence.
  const at::Tensor same = document.unsqueeze(-1).eq(document.unsqueeze(-2));
  return same.tril().unsqueeze(1);
}

}  // namespace phalanx
