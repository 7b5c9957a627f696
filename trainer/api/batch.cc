// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/batch.h"

namespace phalanx {

void move_to(Batch& batch, at::Device device) {
  for (at::Tensor* tensor : batch.tensors()) {
    if (tensor->defined()) *tensor = tensor->to(device);
  }
}

void cast_inputs(Batch& batch, at::ScalarType dtype) {
  for (at::Tensor* tensor : batch.model_inputs()) {
    if (tensor->defined() && tensor->is_floating_point()) *tensor = tensor->to(dtype);
  }
}

}  // namespace phalanx
