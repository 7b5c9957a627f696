// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/kept_buffers.h"

#include <ATen/core/grad_mode.h>

#include "trainer/api/modules.h"

namespace phalanx {

KeptBuffers::KeptBuffers(ModelBase& model) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& buffer : modules::buffers(model.module())) {
    buffers_.emplace_back(buffer, buffer.detach().clone());
  }
}

void KeptBuffers::give_back() {
  const at::NoGradGuard no_grad;
  // Not seen by autograd: a backward pass that is to come may have saved them.
  for (auto& [buffer, value] : buffers_) buffer.variable_data().copy_(value);
}

}  // namespace phalanx
