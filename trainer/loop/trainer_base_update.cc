// SPDX-License-Identifier: Apache-2.0
// How a trainer's step moves the weights: checks of loss and gradients, clipping, the optimizer.

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/api/clip.h"
#include "trainer/api/lr_scheduler.h"
#include "trainer/loop/finite_check.h"
#include "trainer/loop/stopwatch.h"
#include "trainer/loop/trainer_base.h"

namespace phalanx {
namespace {

// A loss scale below this helps nobody: fp16's smallest number is 6e-8.
constexpr double kMinLossScale = 1.0 / 65536;

// The samples of each micro-batch that counts, which needs them no more.
std::vector<std::vector<int64_t>> numbers_of(std::span<const std::unique_ptr<Batch>> batches) {
  std::vector<std::vector<int64_t>> numbers;
  for (const auto& batch : batches) {
    if (batch->counts) numbers.push_back(std::move(batch->sample_numbers));
  }
  return numbers;
}

}  // namespace

// The host learns late of what is computed where it does not wait, and at once of anything else.
void TrainerBase::choose_verdict() {
  const bool is_unwatched = std::ranges::none_of(
      parameters_, [](const auto& parameter) { return parameter.tensor.is_cpu(); });
  if (!is_unwatched || parameters_.empty()) return;
  const double backoff = scaler_ ? scaler_->scaling().backoff_factor : 1;
  late_verdict_.emplace(training_.stop_on_nonfinite_loss, kMinLossScale * backoff);
}

// With a loss scale: true where the gradients may be used.
bool TrainerBase::unscale() {
  if (!scaler_) return true;
  const double scale = scaler_->current_scale();
  const bool finite = scaler_->unscale(gradients_of(parameters_), ranks_);
  state_.loss_scale = scaler_->current_scale();
  state_.good_steps = scaler_->good_steps();
  if (!finite) count_skipped(scale, [this] { return origin_of(micro_batches_); });
  return finite;
}

void TrainerBase::count_skipped(double scale, const std::function<NonfiniteOrigin()>& origin) {
  ++state_.skipped_steps;
  if (!training_.stop_on_nonfinite_loss || scale >= kMinLossScale) return;
  refuse_overflow(scale, origin(), ranks_);
}

NonfiniteOrigin TrainerBase::origin_of(std::span<const std::unique_ptr<Batch>> micro_batches) {
  std::vector<PassFault> passes;
  for (const auto& batch : micro_batches) {
    passes.push_back(
        {.task_model = task_model_,
         .batch = *batch,
         .samples = *training_data_,
         .device = device_,
         .again = [this, &batch = *batch](TaskModel& model) { model.forward(batch, state_); }});
  }
  return nonfinite_origin(passes);
}

std::vector<std::unique_ptr<Batch>> TrainerBase::read_again(
    std::span<const std::vector<int64_t>> samples) const {
  std::vector<std::unique_ptr<Batch>> batches;
  try {
    for (const auto& numbers : samples) {
      if (auto batch = training_data_->read_again(numbers)) {
        bring(*batch);
        batches.push_back(std::move(batch));
      }
    }
  } catch (const std::exception&) {
    // The error that they would explain is told without them.
  }
  return batches;
}

void TrainerBase::clip() {
  if (!training_.clip_grad_norm && !training_.clip_grad_value) return;
  const auto gradients = gradients_of(parameters_);
  if (gradients.empty()) return;
  if (training_.clip_grad_norm) {
    clip_gradients_by_norm(gradients, *training_.clip_grad_norm, *result_.grad_norm);
  }
  if (training_.clip_grad_value) clip_gradients_by_value(gradients, *training_.clip_grad_value);
}

bool TrainerBase::needs_norm() const {
  return training_.clip_grad_norm || grad_norm_requested_ || training_.stop_on_nonfinite_loss;
}

// Every rank calls it, or none. The result has it where somebody asked for it.
GradientNorm TrainerBase::measure_gradients() {
  GradientNorm norm = task_model_.measure_gradients(parameters_);
  const bool has_gradients = std::ranges::any_of(
      parameters_, [](const auto& parameter) { return parameter.tensor.grad().defined(); });
  if (has_gradients && (training_.clip_grad_norm || grad_norm_requested_)) {
    result_.grad_norm = norm.total;
  }
  return norm;
}

void TrainerBase::check_gradients(const std::string& loss_problem) {
  if (!needs_norm()) return;
  const GradientNorm norm = measure_gradients();
  if (!training_.stop_on_nonfinite_loss) return;
  refuse_nonfinite({.loss_problem = loss_problem,
                    .is_norm_finite = std::isfinite(norm.total.item().toDouble()),
                    .gradient_problem = [&] { return nonfinite_gradient(norm, parameters_); },
                    .origin = [this] { return origin_of(micro_batches_); }},
                   ranks_);
}

void TrainerBase::update() {
  const at::NoGradGuard no_grad;
  if (late_verdict_) {
    const Stopwatch stopwatch(
        time_.forward_backward);  // a device that is behind is waited for here
    settle();
  }
  const double factor = lr_scheduler_->factor(state_.step, total_steps_.value_or(0));
  result_.lr = optimizer_->base_lr() * factor;
  if (late_verdict_) {
    update_unwatched(factor);
  } else {
    update_now(factor);
  }
  for (auto& parameter : parameters_) parameter.tensor.mutable_grad().reset();
}

void TrainerBase::update_now(double factor) {
  std::string loss_problem;
  if (training_.stop_on_nonfinite_loss && !scaler_) {
    const Stopwatch stopwatch(time_.forward_backward);  // on a GPU it waits for them here
    loss_problem = nonfinite_loss(result_.loss_parts);
  }
  const Stopwatch stopwatch(time_.update);
  enter("update");
  explaining_memory("update", [&] {
    if (!unscale()) return;
    check_gradients(loss_problem);
    clip();
    optimizer_->step_by(factor);
  });
}

void TrainerBase::update_unwatched(double factor) {
  const Stopwatch stopwatch(time_.update);
  enter("update");
  explaining_memory("update", [&] {
    LateVerdict::Step step{.number = state_.step, .samples = numbers_of(micro_batches_)};
    if (scaler_) {
      step.overflow = scaler_->unscale_there(gradients_of(parameters_), device_, ranks_);
      step.scale = scaler_->scale_there();
      step.good_steps = scaler_->good_steps_there();
    } else if (training_.stop_on_nonfinite_loss) {
      step.loss_parts = result_.loss_parts;
    }
    if (needs_norm()) {
      step.norm = measure_gradients();
      step.norm.total = step.norm.total.to(device_);  // without gradients it is in host memory
    }
    if (!scaler_ && !training_.stop_on_nonfinite_loss) {
      clip();
      return optimizer_->step_by(factor);
    }
    const at::Tensor skip = late_verdict_->judge(std::move(step));
    clip();
    optimizer_->step_by(factor, skip);
  });
}

void TrainerBase::settle() {
  const auto judged = late_verdict_ ? late_verdict_->settle() : std::nullopt;
  if (!judged) return;
  const auto as_of_that_step = [&](const auto& check) {
    try {
      check();
    } catch (...) {
      state_.step = judged->number;  // the later ones have moved nothing
      throw;
    }
  };
  const auto origin = [&] { return origin_of(read_again(judged->samples)); };
  as_of_that_step([&] {
    if (scaler_) {
      const double scale = scaler_->current_scale();
      scaler_->take_over(judged->scale, judged->good_steps);
      state_.loss_scale = judged->scale;
      state_.good_steps = judged->good_steps;
      if (judged->overflowed) return count_skipped(scale, origin);
    }
    if (!training_.stop_on_nonfinite_loss) return;
    refuse_nonfinite(
        {.loss_problem = judged->loss_problem,
         .is_norm_finite = judged->is_norm_finite,
         .gradient_problem = [&] { return nonfinite_gradient(judged->norm, parameters_); },
         .origin = origin},
        ranks_);
  });
}

}  // namespace phalanx
