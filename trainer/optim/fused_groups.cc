// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/fused_groups.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include "trainer/optim/zero_pages.h"

namespace phalanx {
namespace {

bool same_kind(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.device() == b.device();
}

}  // namespace

std::vector<ParameterGroup> split_by_dtype_and_device(std::vector<ParameterGroup> groups) {
  std::vector<ParameterGroup> split;
  for (auto& group : groups) {
    const size_t first = split.size();
    for (auto& parameter : group.parameters) {
      const auto home = std::find_if(
          split.begin() + static_cast<std::ptrdiff_t>(first), split.end(), [&](const auto& part) {
            return same_kind(part.parameters.front().tensor, parameter.tensor);
          });
      if (home != split.end()) {
        home->parameters.push_back(std::move(parameter));
      } else {
        split.push_back({group.label, group.weight_decay, {std::move(parameter)}});
      }
    }
  }
  return split;
}

Gradients gradients_in(const std::vector<NamedParameter>& parameters) {
  Gradients gradients;
  gradients.positions.resize(parameters.size());
  gradients.tensors.reserve(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i].tensor;
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    gradients.positions[gradients.tensors.size()] = i;
    gradients.tensors.push_back(gradient);
    if (gradient.dtype() != parameter.dtype()) {
      gradients.tensors.back() = gradient.to(parameter.scalar_type());
    }
  }
  gradients.positions.resize(gradients.tensors.size());
  return gradients;
}

std::vector<at::Tensor> tensors_of(const std::vector<NamedParameter>& parameters) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(parameters.size());
  for (const auto& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
}

TensorsAt::TensorsAt(const std::vector<at::Tensor>& tensors, const std::vector<size_t>& positions) {
  if (tensors.empty() || tensors.size() == positions.size()) {
    all_ = &tensors;
    return;
  }
  some_.reserve(positions.size());
  for (const size_t i : positions) some_.push_back(tensors[i]);
}

at::Tensor zero_state(const at::Tensor& parameter) {
  constexpr size_t kWorthAMapping = 1 << 20;
  if (parameter.is_cpu() && parameter.is_contiguous() && parameter.nbytes() >= kWorthAMapping) {
    return zero_pages_like(parameter);
  }
  return at::zeros_like(parameter.detach());
}

at::Tensor zero_steps(const at::Tensor& parameter) {
  return at::zeros({}, at::TensorOptions().dtype(at::kFloat).device(parameter.device()));
}

void count_step(at::TensorList steps) {
  if (!steps.front().is_cpu()) return at::_foreach_add_(steps, 1);
  // An operator for each counter takes a twentieth of a small model's step.
  for (const at::Tensor& step : steps) ++*step.mutable_data_ptr<float>();
}

void uncount_step(at::TensorList steps, const at::Tensor& skip) {
  if (skip.defined()) at::_foreach_add_(steps, skip, -1);
}

}  // namespace phalanx
