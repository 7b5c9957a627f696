// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/set_aside.h"

namespace phalanx {

void SetAside::take(std::span<const NamedParameter> parameters) {
  for (const NamedParameter& parameter : parameters) {
    at::Tensor& gradient = parameter.tensor.mutable_grad();
    const bool is_copied = copies_ && gradient.defined();
    gradients_.emplace_back(parameter.tensor, is_copied ? gradient.detach().clone() : gradient);
    gradient.reset();
  }
}

void SetAside::put_back() {
  for (auto& [parameter, gradient] : gradients_) parameter.mutable_grad() = std::move(gradient);
  gradients_.clear();
}

}  // namespace phalanx
