// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/weight_update.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "trainer/step/activity.h"
#include "trainer/step/finite_check.h"

namespace phalanx {
namespace {

// The samples of each micro-batch that counts, which needs them no more.
std::vector<std::vector<int64_t>> numbers_of(std::span<const std::unique_ptr<Batch>> batches) {
  std::vector<std::vector<int64_t>> numbers;
  for (const auto& batch : batches) {
    if (batch->counts) numbers.push_back(std::move(batch->sample_numbers));
  }
  return numbers;
}

}  // namespace

bool WeightUpdate::unscale(const OngoingStep& step) {
  auto& scaler = context_.parts.scaler();
  if (!scaler) return true;
  const double scale = scaler->current_scale();
  const bool finite =
      scaler->unscale(gradients_of(context_.parts.parameters()), context_.parts.ranks());
  context_.state.loss_scale = scaler->current_scale();
  context_.state.good_steps = scaler->good_steps();
  if (!finite) count_skipped(scale, [&] { return search_.origin_of(step.micro_batches); });
  return finite;
}

void WeightUpdate::count_skipped(double scale, const std::function<NonfiniteOrigin()>& origin) {
  ++context_.state.skipped_steps;
  if (!rules_.stop_on_nonfinite_loss || scale >= StepParts::kMinLossScale) return;
  refuse_overflow(scale, origin(), context_.parts.ranks());
}

void WeightUpdate::clip(const OngoingStep& step) const {
  if (!rules_.clip_grad_norm && !rules_.clip_grad_value) return;
  const auto gradients = gradients_of(context_.parts.parameters());
  if (gradients.empty()) return;
  if (rules_.clip_grad_norm) {
    clip_gradients_by_norm(gradients, *rules_.clip_grad_norm, *step.result.grad_norm);
  }
  if (rules_.clip_grad_value) clip_gradients_by_value(gradients, *rules_.clip_grad_value);
}

bool WeightUpdate::needs_norm(const OngoingStep& step) const {
  return rules_.clip_grad_norm || step.is_norm_requested || rules_.stop_on_nonfinite_loss;
}

// Every rank calls it, or none. The result has it where somebody asked for it.
GradientNorm WeightUpdate::measure_gradients(OngoingStep& step) const {
  const auto& parameters = context_.parts.parameters();
  GradientNorm norm = context_.parts.task_model().measure_gradients(parameters);
  const bool has_gradients = std::ranges::any_of(
      parameters, [](const auto& parameter) { return parameter.tensor.grad().defined(); });
  if (has_gradients && (rules_.clip_grad_norm || step.is_norm_requested)) {
    step.result.grad_norm = norm.total;
  }
  return norm;
}

void WeightUpdate::check_gradients(OngoingStep& step, const std::string& loss_problem) const {
  if (!needs_norm(step)) return;
  const GradientNorm norm = measure_gradients(step);
  if (!rules_.stop_on_nonfinite_loss) return;
  refuse_nonfinite(
      {.loss_problem = loss_problem,
       .is_norm_finite = std::isfinite(norm.total.item().toDouble()),
       .gradient_problem = [&] { return nonfinite_gradient(norm, context_.parts.parameters()); },
       .origin = [&] { return search_.origin_of(step.micro_batches); }},
      context_.parts.ranks());
}

void WeightUpdate::update(OngoingStep& step, std::optional<int64_t> total_steps) {
  const at::NoGradGuard no_grad;
  const bool is_unwatched = context_.parts.late_verdict().has_value();
  if (is_unwatched) {
    // A device that is behind is waited for here.
    const Stopwatch stopwatch(context_.time.forward_backward);
    settle();
  }
  const double factor =
      context_.parts.lr_scheduler().factor(context_.state.step, total_steps.value_or(0));
  step.result.lr = context_.parts.optimizer().base_lr() * factor;
  if (is_unwatched) {
    update_unwatched(step, factor);
  } else {
    update_now(step, factor);
  }
  for (const auto& parameter : context_.parts.parameters()) {
    parameter.tensor.mutable_grad().reset();
  }
}

void WeightUpdate::update_now(OngoingStep& step, double factor) {
  std::string loss_problem;
  if (rules_.stop_on_nonfinite_loss && !context_.parts.scaler()) {
    // On a GPU it waits for them here.
    const Stopwatch stopwatch(context_.time.forward_backward);
    loss_problem = nonfinite_loss(step.result.loss_parts);
  }
  const Stopwatch stopwatch(context_.time.update);
  enter(context_.parts.ranks(), context_.state.step, "update");
  context_.errors.explaining_memory("update", [&] {
    if (!unscale(step)) return;
    check_gradients(step, loss_problem);
    clip(step);
    context_.parts.optimizer().step_by(factor);
  });
}

void WeightUpdate::update_unwatched(OngoingStep& step, double factor) {
  const Stopwatch stopwatch(context_.time.update);
  enter(context_.parts.ranks(), context_.state.step, "update");
  StepParts& parts = context_.parts;
  context_.errors.explaining_memory("update", [&] {
    auto& scaler = parts.scaler();
    LateVerdict::Step judged{.number = context_.state.step,
                             .samples = numbers_of(step.micro_batches)};
    if (scaler) {
      judged.overflow =
          scaler->unscale_there(gradients_of(parts.parameters()), parts.device(), parts.ranks());
      judged.scale = scaler->scale_there();
      judged.good_steps = scaler->good_steps_there();
    } else if (rules_.stop_on_nonfinite_loss) {
      judged.loss_parts = step.result.loss_parts;
    }
    if (needs_norm(step)) {
      judged.norm = measure_gradients(step);
      // Without gradients it is in host memory.
      judged.norm.total = judged.norm.total.to(parts.device());
    }
    if (!scaler && !rules_.stop_on_nonfinite_loss) {
      clip(step);
      return parts.optimizer().step_by(factor);
    }
    const at::Tensor skip = parts.late_verdict()->judge(std::move(judged));
    clip(step);
    parts.optimizer().step_by(factor, skip);
  });
}

void WeightUpdate::settle() {
  StepParts& parts = context_.parts;
  const auto judged = parts.late_verdict() ? parts.late_verdict()->settle() : std::nullopt;
  if (!judged) return;
  const auto as_of_that_step = [&](const auto& check) {
    try {
      check();
    } catch (...) {
      context_.state.step = judged->number;  // the later ones have moved nothing
      throw;
    }
  };
  const auto origin = [&] { return search_.origin_of_samples(judged->samples); };
  as_of_that_step([&] {
    if (auto& scaler = parts.scaler()) {
      const double scale = scaler->current_scale();
      scaler->take_over(judged->scale, judged->good_steps);
      context_.state.loss_scale = judged->scale;
      context_.state.good_steps = judged->good_steps;
      if (judged->overflowed) return count_skipped(scale, origin);
    }
    if (!rules_.stop_on_nonfinite_loss) return;
    refuse_nonfinite(
        {.loss_problem = judged->loss_problem,
         .is_norm_finite = judged->is_norm_finite,
         .gradient_problem = [&] { return nonfinite_gradient(judged->norm, parts.parameters()); },
         .origin = origin},
        parts.ranks());
  });
}

}  // namespace phalanx
