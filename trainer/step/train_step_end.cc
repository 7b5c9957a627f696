// SPDX-License-Identifier: Apache-2.0
// Ends a step: checks that all ranks agree, then updates by the gradients or drops them.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "trainer/ranks/failures/unlike_passes.h"
#include "trainer/step/activity.h"
#include "trainer/step/decision.h"
#include "trainer/step/loss_parts.h"
#include "trainer/step/train_step.h"

namespace phalanx {

void TrainStep::require_reduced() const {
  if (!progress_.are_gradients_local || !context_.parts.task_model().has_engine()) return;
  throw std::logic_error(
      "the gradients are this rank's alone, as the last backward pass did not reduce them: let "
      "it follow a forward pass of the last micro-batch, or a run that synchronizes");
}

void TrainStep::update() {
  end(Decision::update());
  require_reduced();
  progress_.has_updated = true;
  hooks_.after_backward();
  update_.update(ongoing_, point_);
}

void TrainStep::update(std::string_view optimizer) {
  if (progress_.is_over) throw std::logic_error("an update of a step that is updated or skipped");
  const OptimizerPart& part = context_.parts.optimizer(optimizer);
  require_agreement({.number = 1 + (&part - context_.parts.optimizers().data()),
                     .text = fmt::format("updates '{}'", optimizer)});
  require_reduced();
  progress_.has_updated = true;
  hooks_.after_backward();
  update_.update(ongoing_, point_, std::span(&part, 1));
}

void TrainStep::skip() {
  end(Decision::skip());
  // FSDP keeps such gradients apart, where the next step would find them.
  if (progress_.has_gone_back && progress_.are_gradients_local &&
      context_.parts.task_model().has_engine()) {
    throw std::logic_error(
        "the skipped gradients are this rank's alone, as the last backward pass did not reduce "
        "them: skip before the first backward pass, or after one that synchronizes");
  }
  context_.parts.task_model().end_backward();  // a forward pass may have had none
  ongoing_.result.is_skipped = !ongoing_.has_moved;
  for (const auto& parameter : context_.parts.parameters()) {
    parameter.tensor.mutable_grad().reset();
  }
}

void TrainStep::end_after_updates_by_name() {
  end({.number = -1, .text = "ends the step"});
  require_no_gradients();
  context_.parts.task_model().end_backward();  // a forward pass may have had none
}

void TrainStep::require_no_gradients() const {
  std::vector<std::string> names;
  for (const OptimizerPart& part : context_.parts.optimizers()) {
    if (part.has_gradients()) names.push_back(part.name());
  }
  // FSDP has those of passes that did not reduce them elsewhere.
  const bool has_local = context_.parts.task_model().has_engine() && progress_.has_gone_back &&
                         progress_.are_gradients_local;
  if (names.empty() && !has_local) return;
  throw std::logic_error(fmt::format(
      "the task's training_step has ended step {} with gradients that {}: end it by an update() of "
      "all or of each, by skip(), which drops them, or keep passes from them "
      "(BackwardOptions::into)",
      context_.state.step,
      has_local ? "no pass has reduced"
                : fmt::format("optimizer '{}' has not moved by", fmt::join(names, "', '"))));
}

void TrainStep::end(const Decision& decision) {
  if (progress_.is_over) throw std::logic_error("a step has one update or one skip");
  progress_.is_over = true;
  require_agreement(decision);
  auto& parts = ongoing_.result.loss_parts;
  for (auto& [name, value] : ongoing_.own_parts) add_to_part(parts, name, value);
  ongoing_.own_parts.clear();
  const auto is_sum = [](const auto& part) { return part.first == "loss"; };
  if (parts.size() < 2 || std::ranges::none_of(parts, is_sum)) return;
  throw std::logic_error(
      "a step of several losses has one called 'loss', the name of their sum: give each a name "
      "(Loss::Parts, BackwardOptions::name)");
}

// The names of what this step logs: values are summed over ranks in their order.
std::string TrainStep::logged_names() const {
  std::string names;
  const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  for (const auto& [name, value] : ongoing_.result.loss_parts) add(name);
  for (const auto& [name, value] : ongoing_.own_parts) add(name);
  for (const LoggedValue& logged : ongoing_.result.values) add(logged.name);
  return names;
}

void TrainStep::require_agreement(const Decision& decision) const {
  const Ranks& all = context_.parts.ranks();
  if (progress_.is_usual || all.is_single_rank()) return;
  enter(all, context_.state.step, activity_before(decision.text));
  phalanx::require_agreement(decision, logged_names(), context_.state.step, all);
}

}  // namespace phalanx
