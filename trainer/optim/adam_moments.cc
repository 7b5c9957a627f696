// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/adam_moments.h"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <c10/core/GradMode.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "trainer/optim/fused_groups.h"

namespace phalanx {

void AdamMoments::bind(std::vector<ParameterGroup> groups) {
  bound_.clear();
  for (auto& group : split_by_dtype_and_device(std::move(groups))) {
    Moments moments;
    moments.group = std::move(group);
    moments.parameters = tensors_of(moments.group.parameters);
    for (const auto& parameter : moments.group.parameters) {
      moments.exp_avg.push_back(zero_state(parameter.tensor));
      moments.exp_avg_sq.push_back(zero_state(parameter.tensor));
      if (rule_.amsgrad) moments.max_exp_avg_sq.push_back(zero_state(parameter.tensor));
      moments.step.push_back(zero_steps(parameter.tensor));
    }
    bound_.push_back(std::move(moments));
  }
}

void AdamMoments::step(double lr, const at::Tensor& skip) const {
  const c10::NoGradGuard no_grad;
  for (const auto& moments : bound_) update(moments, skip, lr);
}

std::vector<ShardedTensorView> AdamMoments::state() const {
  std::vector<ShardedTensorView> views;
  for (const auto& moments : bound_) {
    for (std::size_t i = 0; i < moments.group.parameters.size(); ++i) {
      const NamedParameter& parameter = moments.group.parameters[i];
      views.push_back(state_view(parameter, "exp_avg", moments.exp_avg[i]));
      views.push_back(state_view(parameter, "exp_avg_sq", moments.exp_avg_sq[i]));
      if (rule_.amsgrad) {
        views.push_back(state_view(parameter, "max_exp_avg_sq", moments.max_exp_avg_sq[i]));
      }
      views.push_back(state_view(parameter, "step", moments.step[i]));
    }
  }
  return views;
}

void AdamMoments::update(const Moments& moments, const at::Tensor& skip, double lr) const {
  const Gradients gradients = gradients_in(moments.group.parameters);
  const std::vector<std::size_t>& active = gradients.positions;
  if (active.empty()) return;
  const TensorsAt steps(moments.step, active);
  count_step(steps);
  const double weight_decay = moments.group.weight_decay ? rule_.weight_decay : 0.0;
  const auto call = [&](auto fused) {
    fused(TensorsAt(moments.parameters, active), gradients.tensors,
          TensorsAt(moments.exp_avg, active), TensorsAt(moments.exp_avg_sq, active),
          TensorsAt(moments.max_exp_avg_sq, active), steps, lr, rule_.betas[0], rule_.betas[1],
          weight_decay, rule_.eps, rule_.amsgrad, rule_.maximize,
          /*grad_scale=*/std::nullopt, skip.defined() ? std::optional(skip) : std::nullopt);
  };
  if (rule_.decay == Decay::decoupled) {
    call([](const auto&... arguments) { at::_fused_adamw_(arguments...); });
  } else {
    call([](const auto&... arguments) { at::_fused_adam_(arguments...); });
  }
  uncount_step(steps, skip);
}

}  // namespace phalanx
