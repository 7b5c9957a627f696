// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/newton_schulz.h"

#include <ATen/ops/addmm.h>

namespace phalanx {

at::Tensor orthogonalized(const at::Tensor& matrix, const NewtonSchulz& iteration) {
  const auto [a, b, c] = iteration.coefficients;
  const bool is_tall = matrix.size(0) > matrix.size(1);
  at::Tensor result = is_tall ? matrix.t() : matrix;
  result.div_(result.norm().clamp(iteration.eps));  // no singular value is above 1 then
  for (int64_t i = 0; i < iteration.steps; ++i) {
    const at::Tensor gram = result.matmul(result.t());
    const at::Tensor update = at::addmm(gram, gram, gram, /*beta=*/b, /*alpha=*/c);
    result = at::addmm(result, update, result, /*beta=*/a);
  }
  return is_tall ? result.t() : result;
}

}  // namespace phalanx
