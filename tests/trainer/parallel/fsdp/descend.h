// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>

#include <vector>

#include "trainer/api/optimizer.h"

namespace phalanx::fsdp::testing {

/// Gradient descent with decay, for parameters that have a gradient; takes it away.
inline void descend(const std::vector<NamedParameter>& parameters) {
  constexpr double kLearningRate = 0.1;
  constexpr double kDecay = 0.01;
  const at::NoGradGuard no_grad;
  for (const auto& parameter : parameters) {
    if (!parameter.tensor.grad().defined()) continue;
    parameter.tensor.mul_(1 - kLearningRate * kDecay);
    parameter.tensor.sub_(parameter.tensor.grad(), kLearningRate);
    parameter.tensor.mutable_grad().reset();
  }
}

}  // namespace phalanx::fsdp::testing
