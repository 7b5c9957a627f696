// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/power_sgd/orthogonalize.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/sum.h>

#include <array>
#include <cstdint>
#include <tuple>

namespace phalanx::power_sgd {
namespace {

void gram_schmidt(const at::Tensor& matrices, double epsilon) {
  constexpr std::array<int64_t, 1> kRows{1};
  const int64_t columns = matrices.size(2);
  for (int64_t i = 0; i < columns; ++i) {
    const at::Tensor column = matrices.narrow(2, i, 1);
    at::Tensor norm = at::linalg_vector_norm(column, 2, kRows, /*keepdim=*/true);
    if (epsilon != 0) norm = norm.add(epsilon);
    column.div_(norm);
    if (i + 1 == columns) return;
    const at::Tensor rest = matrices.narrow(2, i + 1, columns - i - 1);
    rest.sub_(at::sum(column * rest, kRows, /*keepdim=*/true) * column);
  }
}

}  // namespace

void orthogonalize(const at::Tensor& matrices, double epsilon) {
  const bool is_narrow =
      matrices.scalar_type() == at::kHalf || matrices.scalar_type() == at::kBFloat16;
  if (matrices.size(2) <= 2 || is_narrow) {
    gram_schmidt(matrices, epsilon);
  } else {
    matrices.copy_(std::get<0>(at::linalg_qr(matrices)));
  }
}

}  // namespace phalanx::power_sgd
