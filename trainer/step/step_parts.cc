// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/step_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "trainer/api/parameters.h"
#include "trainer/api/task.h"
#include "trainer/base/joined.h"
#include "trainer/step/drawing_progress.h"

namespace phalanx {

StepParts::StepParts(StepSetup setup)
    : ranks_(std::move(setup.ranks)),
      data_ranks_(setup.data_ranks.value_or(ranks_)),
      idle_ranks_(setup.idle_ranks),
      device_(setup.device),
      double_precision_(setup.double_precision),
      task_model_(std::move(setup.task_model)),
      optimizers_(std::move(setup.optimizers)),
      deferred_init_(std::move(setup.deferred_init)) {
  if (task_model_.has_task()) task_model_.task().join(data_ranks_);
  if (ranks_.is_single_rank() || !deferred_init_) initialize_model();
}

const OptimizerPart& StepParts::optimizer(std::string_view name) const {
  const auto found = std::ranges::find_if(
      optimizers_, [&](const auto& part) { return !name.empty() && part.name() == name; });
  if (found != optimizers_.end()) return *found;
  if (optimizers_.size() == 1 && optimizers_.front().name().empty()) {
    throw std::logic_error(
        fmt::format("no optimizer has the name '{}': the run has one, without a name; several have "
                    "theirs in `optimizers`",
                    name));
  }
  const auto name_of = [](const auto& part) -> const std::string& { return part.name(); };
  throw std::logic_error(fmt::format("no optimizer has the name '{}'; there are: {}", name,
                                     joined(optimizers_, ", ", name_of)));
}

std::vector<ShardedTensorView> StepParts::optimizer_state() const {
  if (optimizers_.empty()) {
    throw std::logic_error("a trainer that is not built to train has no optimizer");
  }
  std::vector<ShardedTensorView> views;
  for (const OptimizerPart& part : optimizers_) {
    std::ranges::move(part.optimizer->state(), std::back_inserter(views));
  }
  return views;
}

std::optional<at::ScalarType> StepParts::input_dtype() const {
  if (const auto dtype = task_model_.input_dtype()) return dtype;
  return double_precision_ ? std::optional(at::kDouble) : std::nullopt;
}

void StepParts::initialize_model() {
  if (const auto deferred = take_deferred_init()) {
    uint64_t bytes = 0;
    for (const NamedParameter& parameter : named_parameters(model())) {
      if (deferred->is_pending(parameter.tensor)) bytes += parameter.tensor.nbytes();
    }
    show_drawing(bytes, [&](const DeferredInit::Filled& filled) { deferred->fill(filled); });
  }
  if (double_precision_) to_double(model());
  move_to(model(), device_);
}

void StepParts::use_mixed_precision(at::ScalarType dtype,
                                    const std::optional<LossScaling>& scaling) {
  task_model_ = task_model_.with_autocast(AutocastTo{.device = device_.type(), .dtype = dtype});
  if (scaling) scaler_.emplace(*scaling);
}

void StepParts::group_parameters() {
  std::vector<OptimizerRules> rules;
  for (const OptimizerPart& part : optimizers_) rules.push_back(part.rules);
  groups_ = groups_by_optimizer(model(), rules);
  auto lines = describe_by_optimizer(groups_, model(), rules);
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    optimizers_[i].group_summaries = std::move(lines[i]);
  }
}

void StepParts::bind_optimizers(bool stops_on_nonfinite) {
  std::unordered_map<std::string, OptimizerPart*> owners;
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    for (ParameterGroup& group : groups_[i]) {
      for (NamedParameter& parameter : group.parameters) {
        owners[parameter.name] = &optimizers_[i];
        parameter = task_model_.local(parameter);
      }
    }
  }
  // In the model's order: Python's clip_grad_norm_(model.parameters()) sums in that one.
  for (const auto& parameter : named_parameters(model())) {
    if (!parameter.tensor.requires_grad()) continue;
    parameters_.push_back(task_model_.local(parameter));
    owners.at(parameter.name)->parameters.push_back(parameters_.back());
  }
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    optimizers_[i].optimizer->join(ranks_);
    optimizers_[i].optimizer->bind(std::move(groups_[i]));
  }
  groups_.clear();
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
