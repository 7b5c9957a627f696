// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/measures/inputs.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <limits>
#include <stdexcept>

namespace phalanx::metrics {

void require_inputs(const MetricInputs& inputs, size_t least, size_t most, const char* what) {
  if (inputs.size() < least || inputs.size() > most) {
    throw std::invalid_argument(
        fmt::format("it takes {}, and is fed {} tensors", what, inputs.size()));
  }
  for (const at::Tensor& input : inputs) {
    if (!input.defined()) {
      throw std::invalid_argument(fmt::format("it takes {}, and one is undefined", what));
    }
  }
}

at::Tensor flat(const at::Tensor& values) { return values.to(at::kDouble).reshape(-1); }

at::Tensor counterparts(const at::Tensor& values, const MetricInputs& inputs, size_t index) {
  if (index >= inputs.size()) return at::ones_like(values, values.options().dtype(at::kDouble));
  const at::Tensor numbers = flat(inputs[index]);
  if (numbers.numel() != values.numel()) {
    throw std::invalid_argument(
        fmt::format("it is fed tensors of {} and {} elements", values.numel(), numbers.numel()));
  }
  return numbers.to(values.device());
}

at::Tensor weighed_sum(const at::Tensor& values, const at::Tensor& weights) {
  return at::where(weights == 0, at::zeros_like(values), values * weights).sum();
}

double quotient(double a, double b) {
  return b == 0 ? std::numeric_limits<double>::quiet_NaN() : a / b;
}

}  // namespace phalanx::metrics
