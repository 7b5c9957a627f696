// SPDX-License-Identifier: Apache-2.0
#include "trainer/tensors/tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

namespace phalanx::tensors {

at::Tensor empty(at::IntArrayRef sizes, const at::TensorOptions& options) {
  return at::empty(sizes, options);
}

at::Tensor zeros(at::IntArrayRef sizes, const at::TensorOptions& options) {
  return at::zeros(sizes, options);
}

}  // namespace phalanx::tensors
