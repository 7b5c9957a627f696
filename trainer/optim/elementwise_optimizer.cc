// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/elementwise_optimizer.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

namespace phalanx {

StateKind counted_steps() {
  return {.name = "step", .first = zero_steps, .is_kept = true, .is_per_element = false};
}

int64_t ElementwiseOptimizer::states_per_element() const {
  return std::ranges::count_if(
      kinds_, [](const StateKind& kind) { return kind.is_kept && kind.is_per_element; });
}

void ElementwiseOptimizer::bind(std::vector<ParameterGroup> groups) {
  bound_.clear();
  for (ParameterGroup& group : split_by_dtype_and_device(std::move(groups))) {
    BoundParameters bound{.group = std::move(group), .parameters = {}, .states = {}};
    bound.parameters = tensors_of(bound.group.parameters);
    bound.states.resize(kinds_.size());
    for (const at::Tensor& parameter : bound.parameters) {
      for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
        if (kinds_[kind].is_kept) bound.states[kind].push_back(kinds_[kind].first(parameter));
      }
    }
    bound_.push_back(std::move(bound));
  }
}

void ElementwiseOptimizer::step_unless(const at::Tensor& skip, double lr) {
  const c10::NoGradGuard no_grad;
  for (const BoundParameters& bound : bound_) {
    auto [positions, gradients] = gradients_in(bound.group.parameters);
    if (positions.empty()) continue;
    update({.bound = bound, .positions = std::move(positions), .gradients = std::move(gradients)},
           skip, lr);
  }
}

std::vector<ShardedTensorView> ElementwiseOptimizer::state() {
  std::vector<ShardedTensorView> views;
  for (const BoundParameters& bound : bound_) {
    for (std::size_t i = 0; i < bound.parameters.size(); ++i) {
      for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
        if (!kinds_[kind].is_kept) continue;
        views.push_back(
            state_view(bound.group.parameters[i], kinds_[kind].name, bound.states[kind][i]));
      }
    }
  }
  return views;
}

}  // namespace phalanx
