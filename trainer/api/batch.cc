// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/batch.h"

#include <c10/core/DeviceGuard.h>

namespace phalanx {

void move_to(Batch& batch, at::Device device) {
  for (at::Tensor* tensor : batch.tensors()) {
    if (tensor->defined()) *tensor = tensor->to(device, /*non_blocking=*/!device.is_cpu());
  }
}

void pin(Batch& batch, at::Device gpu) {
  // Another thread's current GPU is the first, where pinning would make a context.
  const c10::DeviceGuard guard(gpu);
  for (at::Tensor* tensor : batch.tensors()) {
    if (tensor->defined()) *tensor = tensor->pin_memory();
  }
}

void cast_inputs(Batch& batch, at::ScalarType dtype) {
  for (at::Tensor* tensor : batch.model_inputs()) {
    if (tensor->defined() && tensor->is_floating_point()) *tensor = tensor->to(dtype);
  }
}

}  // namespace phalanx
