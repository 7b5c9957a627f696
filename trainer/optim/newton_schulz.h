// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace phalanx {

/// How a matrix is made orthogonal.
struct NewtonSchulz {
  std::array<double, 3> coefficients = {3.4445, -4.7750, 2.0315};
  double eps = 1e-7;
  int64_t steps = 5;
};

/// About U Vᵀ of a matrix U S Vᵀ [rows, columns] in bfloat16, which is overwritten; its singular
/// values become numbers near 1. The operations of torch/optim/_muon.py
/// (_zeropower_via_newtonschulz), so that the result is bitwise Python's.
at::Tensor orthogonalized(const at::Tensor& matrix, const NewtonSchulz& iteration);

}  // namespace phalanx
