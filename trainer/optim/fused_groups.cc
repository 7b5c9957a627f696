// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/fused_groups.h"

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

std::vector<size_t> with_gradient(const std::vector<NamedParameter>& parameters) {
  std::vector<size_t> positions;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].tensor.grad().defined()) positions.push_back(i);
  }
  return positions;
}

std::vector<at::Tensor> gradients_at(const std::vector<NamedParameter>& parameters,
                                     const std::vector<size_t>& positions) {
  std::vector<at::Tensor> gradients;
  gradients.reserve(positions.size());
  for (const size_t i : positions) {
    const at::Tensor& tensor = parameters[i].tensor;
    gradients.push_back(tensor.grad().to(tensor.scalar_type()));
  }
  return gradients;
}

std::vector<at::Tensor> parameters_at(const std::vector<NamedParameter>& parameters,
                                      const std::vector<size_t>& positions) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(positions.size());
  for (const size_t i : positions) tensors.push_back(parameters[i].tensor);
  return tensors;
}

std::vector<at::Tensor> tensors_at(const std::vector<at::Tensor>& tensors,
                                   const std::vector<size_t>& positions) {
  std::vector<at::Tensor> chosen;
  if (tensors.empty()) return chosen;  // A state that this configuration does not keep.
  chosen.reserve(positions.size());
  for (const size_t i : positions) chosen.push_back(tensors[i]);
  return chosen;
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

}  // namespace phalanx
