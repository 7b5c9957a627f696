// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/step_parts.h"

#include <algorithm>
#include <stdexcept>

#include "trainer/api/parameters.h"
#include "trainer/api/task.h"

namespace phalanx {

StepParts::StepParts(StepSetup setup)
    : ranks_(std::move(setup.ranks)),
      device_(setup.device),
      double_precision_(setup.double_precision),
      task_model_(std::move(setup.task_model)),
      optimizer_(std::move(setup.optimizer)),
      lr_scheduler_(std::move(setup.lr_scheduler)),
      deferred_init_(std::move(setup.deferred_init)),
      parameter_rules_(std::move(setup.parameter_rules)) {
  if (task_model_.has_task()) task_model_.task().join(ranks_);
  if (ranks_.is_single_rank() || !deferred_init_) initialize_model();
}

Optimizer& StepParts::optimizer() const {
  if (!optimizer_) throw std::logic_error("a trainer that is not built to train has no optimizer");
  return *optimizer_;
}

std::optional<at::ScalarType> StepParts::input_dtype() const {
  if (const auto dtype = task_model_.input_dtype()) return dtype;
  return double_precision_ ? std::optional(at::kDouble) : std::nullopt;
}

void StepParts::initialize_model() {
  if (const auto deferred = take_deferred_init()) deferred->fill();
  if (double_precision_) to_double(model());
  move_to(model(), device_);
}

void StepParts::use_mixed_precision(at::ScalarType dtype,
                                    const std::optional<LossScaling>& scaling) {
  task_model_ = task_model_.with_autocast(AutocastTo{.device = device_.type(), .dtype = dtype});
  if (scaling) scaler_.emplace(*scaling);
}

void StepParts::group_parameters() {
  groups_ = parameter_groups(model(), parameter_rules_);
  group_summaries_ = describe_groups(groups_, model(), parameter_rules_);
}

void StepParts::bind_optimizer(bool stops_on_nonfinite) {
  // In the model's order: Python's clip_grad_norm_(model.parameters()) sums in that one.
  for (const auto& parameter : named_parameters(model())) {
    if (parameter.tensor.requires_grad()) parameters_.push_back(task_model_.local(parameter));
  }
  for (auto& group : groups_) {
    for (auto& parameter : group.parameters) parameter = task_model_.local(parameter);
  }
  optimizer_->join(ranks_);
  optimizer_->bind(std::exchange(groups_, {}));
  choose_verdict(stops_on_nonfinite);
}

// The host learns late of what is computed where it does not wait, and at once of anything else.
void StepParts::choose_verdict(bool stops_on_nonfinite) {
  const bool is_unwatched = std::ranges::none_of(
      parameters_, [](const auto& parameter) { return parameter.tensor.is_cpu(); });
  if (!is_unwatched || parameters_.empty()) return;
  const double backoff = scaler_ ? scaler_->scaling().backoff_factor : 1;
  late_verdict_.emplace(stops_on_nonfinite, kMinLossScale * backoff);
}

}  // namespace phalanx
