// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/optimizer_part.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

namespace phalanx {

bool OptimizerPart::has_gradients() const {
  return std::ranges::any_of(
      parameters, [](const auto& parameter) { return parameter.tensor.grad().defined(); });
}

}  // namespace phalanx
