// SPDX-License-Identifier: Apache-2.0
// Where a run is: goes to a saved state, and begins and ends epochs and steps.

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "trainer/api/task.h"
#include "trainer/loop/cannot_go_back.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/step/loss_parts.h"

namespace phalanx {

void TrainerBase::restore(const State& state) {
  const double initial_scale = state_.loss_scale;
  state_ = state;
  state_.validation_due = state.validation_due && can_validate();
  clock_.go_on_from(state.elapsed);
  restore_scale(state, initial_scale);
}

void TrainerBase::go_back(const State& saved) {
  const State now = state_;
  state_ = saved;
  state_.phase = now.phase;
  state_.epoch = now.epoch;
  state_.epoch_samples = now.epoch_samples;
  state_.samples = now.samples;
  state_.tokens = now.tokens;
  state_.elapsed = now.elapsed;
  state_.validation_due = false;  // it was of the time before
  restore_scale(saved, now.loss_scale);
}

void TrainerBase::restore_scale(const State& state, double initial_scale) {
  auto& scaler = parts_.scaler();
  if (!scaler) {
    state_.loss_scale = 0;
  } else if (state.loss_scale > 0) {
    scaler->restore(state.loss_scale, state.good_steps);
  } else {
    state_.loss_scale = initial_scale;
  }
}

bool TrainerBase::begin_epoch() {
  if (feed_->stops()) return false;
  state_.validation_due = false;  // It has been made, or nothing of this composition validates.
  // A run that was stopped within the validation of an epoch's last step has still to end the
  // epoch.
  if (finished() && !epoch_is_over()) return false;
  feed_->start_epoch();
  task_model().task().epoch_starts(model(), state_);
  return true;
}

bool TrainerBase::begin_step() {
  if (finished() || feed_->stops() || feed_->cuts_epoch()) {
    feed_->drop();
    settle();
    return false;
  }
  step_->ongoing().begin();
  ++state_.step;  // before anything can fail, so that an error names the step it happened in
  if (feed_->take(step_->ongoing(), accumulation_)) {
    StepResult& result = step_->ongoing().result;
    result.save_requested = std::exchange(owes_save_, false) || result.save_requested;
    return true;
  }
  --state_.step;
  step_->ongoing().is_running = false;
  settle();
  if (epoch_is_over() || feed_->stops()) return false;
  throw std::logic_error(fmt::format(
      "the training data ended after {} samples of an epoch, but its samples_per_epoch is {}",
      state_.epoch_samples, training_data().samples_per_epoch()));
}

bool TrainerBase::run_step() {
  step_->run_task(schedule_point());
  if (!step_->ongoing().is_undone) return true;
  undo_step();
  return false;
}

void TrainerBase::undo_step() {
  OngoingStep& step = step_->ongoing();
  if (!go_back_by_) {
    throw std::logic_error("a guard undoes a step, and no mixin says how the run goes back");
  }
  state_.samples += step.result.samples;
  state_.epoch_samples += step.result.samples;
  state_.tokens += step.result.tokens;
  step.is_running = false;
  owes_save_ = step.result.save_requested;
  step.micro_batches.clear();
  try {
    go_back_by_();
  } catch (const CannotGoBack& error) {
    throw std::runtime_error(fmt::format("{}. Guards would undo this step (rollback), but {}",
                                         step.result.guarded_by, error.what()));
  }
}

const StepResult& TrainerBase::end_step() {
  OngoingStep& step = step_->ongoing();
  StepResult& result = step.result;
  state_.samples += result.samples;
  state_.epoch_samples += result.samples;
  state_.tokens += result.tokens;
  // Where time is a limit, all ranks go by rank 0's clock.
  state_.elapsed = training_.max_seconds ? of_first_rank(elapsed_now()) : elapsed_now();
  result.step_seconds = Stopwatch::seconds_since(step.began);
  result.ends_epoch = epoch_is_over();
  result.ends_training =
      training_.limit_reached(state_) ||
      (result.ends_epoch && training_.max_epochs && state_.epoch + 1 >= *training_.max_epochs);
  step.is_running = false;
  if (when_step_ends_) when_step_ends_(state_.step);
  task_model().task().step_ended(model(), state_);
  return result;
}

void TrainerBase::end_epoch() {
  ++state_.epoch;
  state_.epoch_samples = 0;
}

void TrainerBase::settle() {
  if (step_) step_->settle();
}

NamedValues TrainerBase::global_losses(const StepResult& result) const {
  NamedValues values = result.losses();
  const size_t losses = values.size();
  for (const LoggedValue& logged : result.values) {
    values.emplace_back(logged.name, logged.sum.item().toDouble());
    values.emplace_back(logged.name, logged.weight);
  }
  // Ranks that share their samples with the one that has the loss have 0.
  sum_over_ranks(values, ranks());
  // Sums of values become means; their weights go.
  for (size_t i = 0; i < result.values.size(); ++i) {
    const double sum = values[losses + 2 * i].second;
    const double weight = values[losses + 2 * i + 1].second;
    values[losses + i] = {result.values[i].name, weight == 0 ? 0 : sum / weight};
  }
  values.resize(losses + result.values.size());
  return values;
}

}  // namespace phalanx
