// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/clip.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>

namespace phalanx {

std::vector<at::Tensor> gradients_of(const std::vector<NamedParameter>& parameters) {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters.size());
  for (const auto& parameter : parameters) {
    if (parameter.tensor.grad().defined()) gradients.push_back(parameter.tensor.grad());
  }
  return gradients;
}

at::ScalarType type_of_norm(const std::vector<at::Tensor>& gradients) {
  if (gradients.empty()) return at::kFloat;
  at::ScalarType type = gradients.front().scalar_type();
  for (const at::Tensor& gradient : gradients) {
    type = c10::promoteTypes(type, gradient.scalar_type());
  }
  return at::isReducedFloatingType(type) ? at::kFloat : type;
}

namespace {

// In one dimension; there is a gradient.
at::Tensor norms_of(const std::vector<at::Tensor>& gradients) {
  const bool any_is_low = std::any_of(gradients.begin(), gradients.end(), [](const auto& gradient) {
    return at::isReducedFloatingType(gradient.scalar_type());
  });
  const auto dtype = any_is_low ? std::optional(type_of_norm(gradients)) : std::nullopt;
  return at::stack(at::_foreach_norm(gradients, 2.0, dtype));
}

}  // namespace

GradientNorm measure_gradients(const std::vector<NamedParameter>& parameters,
                               const std::function<bool(const NamedParameter&)>& counts) {
  GradientNorm norm;
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters.size());
  norm.positions.reserve(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& gradient = parameters[i].tensor.grad();
    if (!gradient.defined() || (counts && !counts(parameters[i]))) continue;
    gradients.push_back(gradient);
    norm.positions.push_back(i);
  }
  if (gradients.empty()) {
    norm.total = at::zeros({});
    return norm;
  }
  norm.each = norms_of(gradients);
  norm.total = at::linalg_vector_norm(norm.each, 2.0);
  return norm;
}

at::Tensor gradient_norm(const std::vector<at::Tensor>& gradients) {
  if (gradients.empty()) return at::zeros({});
  return at::linalg_vector_norm(norms_of(gradients), 2.0);
}

void clip_gradients_by_norm(const std::vector<at::Tensor>& gradients, double max_norm,
                            const at::Tensor& norm) {
  // 1e-6 and the clamp without a branch are PyTorch's: no stall to look at the norm.
  const at::Tensor factor = at::clamp(max_norm / (norm + 1e-6), std::nullopt, 1.0);
  at::_foreach_mul_(gradients, factor);
}

void clip_gradients_by_value(const std::vector<at::Tensor>& gradients, double max_value) {
  at::_foreach_clamp_min_(gradients, -max_value);
  at::_foreach_clamp_max_(gradients, max_value);
}

}  // namespace phalanx
