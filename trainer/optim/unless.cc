// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/unless.h"

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>

#include <cstddef>
#include <utility>

namespace phalanx {

Unless::Unless(const at::Tensor& skip) {
  if (skip.defined()) is_skipped_ = skip.to(at::kBool);
}

void Unless::replace(std::vector<at::Tensor>& tensors, double number) const {
  if (!is_skipped_.defined()) return;
  for (at::Tensor& tensor : tensors) tensor = tensor.masked_fill(is_skipped_, number);
}

std::vector<at::Tensor> Unless::or_else(std::vector<at::Tensor> tensors,
                                        at::TensorList others) const {
  if (!is_skipped_.defined()) return tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = at::where(is_skipped_, others[i], tensors[i]);
  }
  return tensors;
}

void Unless::multiply(at::TensorList tensors, double factor) const {
  if (is_skipped_.defined()) {
    for (const at::Tensor& tensor : tensors) {
      tensor.copy_(at::where(is_skipped_, tensor, tensor.mul(factor)));
    }
  } else if (tensors.front().is_cpu()) {
    // There mul_ rounds a Scalar to the tensor's dtype, and takes a tensor of one number as it is.
    at::_foreach_mul_(tensors, at::scalar_tensor(factor, at::kDouble));
  } else {
    at::_foreach_mul_(tensors, factor);
  }
}

}  // namespace phalanx
