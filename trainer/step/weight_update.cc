// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/weight_update.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/step/activity.h"
#include "trainer/step/finite_check.h"
#include "trainer/step/guarded_values.h"
#include "trainer/step/step_samples.h"

namespace phalanx {
namespace {

// The first gradient that is not finite, in words; empty: none is by itself. By optimizer.
std::string nonfinite_gradient_of(std::span<const GradientNorm> norms,
                                  std::span<const OptimizerPart* const> parts) {
  for (size_t i = 0; i < norms.size(); ++i) {
    std::string problem = nonfinite_gradient(norms[i], parts[i]->parameters);
    if (!problem.empty()) return problem;
  }
  return {};
}

// The first part of the losses that is not finite, in words; empty: none. Copies none of a step
// whose parts are together.
std::string nonfinite_loss_of(const OngoingStep& step) {
  if (step.own_parts.empty()) return nonfinite_loss(step.result.loss_parts);
  return nonfinite_loss(step.loss_parts());
}

// What the step's result says of an optimizer: at its last update of the step.
OptimizerResult& result_of(StepResult& result, const OptimizerPart& part) {
  const auto known = std::ranges::find(result.optimizers, part.name(), &OptimizerResult::name);
  if (known != result.optimizers.end()) return *known;
  return result.optimizers.emplace_back(OptimizerResult{.name = part.name()});
}

void note_lr(StepResult& result, const OptimizerPart& part, double lr) {
  (part.name().empty() ? result.lr : result_of(result, part).lr) = lr;
}

void note_norm(StepResult& result, const OptimizerPart& part, const at::Tensor& norm) {
  (part.name().empty() ? result.grad_norm : result_of(result, part).grad_norm) = norm;
}

}  // namespace

void WeightUpdate::clip(const OptimizerPart& part, const GradientNorm& norm) const {
  const std::optional<double> limit = limit_of(part);
  if (!limit && !rules_.clip_grad_value) return;
  const auto gradients = gradients_of(part.parameters);
  if (gradients.empty()) return;
  if (limit) clip_gradients_by_norm(gradients, *limit, norm.total);
  if (rules_.clip_grad_value) clip_gradients_by_value(gradients, *rules_.clip_grad_value);
}

// Every rank calls it, or none. The result has those that somebody asked for.
std::vector<GradientNorm> WeightUpdate::measure_gradients(OngoingStep& step,
                                                          const Parts& parts) const {
  const bool is_needed =
      step.is_norm_requested || rules_.stop_on_nonfinite_loss || guard_ != nullptr ||
      std::ranges::any_of(parts,
                          [&](const OptimizerPart* part) { return limit_of(*part).has_value(); });
  std::vector<GradientNorm> norms;
  if (!is_needed) return norms;
  norms.reserve(parts.size());
  for (const OptimizerPart* part : parts) {
    norms.push_back(context_.parts.task_model().measure_gradients(part->parameters));
    const bool is_shown = limit_of(*part) || step.is_norm_requested;
    if (is_shown && part->has_gradients()) note_norm(step.result, *part, norms.back().total);
  }
  return norms;
}

bool WeightUpdate::passes_guard(OngoingStep& step, const Parts& parts,
                                const std::vector<GradientNorm>& norms) {
  if (guard_ == nullptr) return true;
  double total = 0;
  for (const GradientNorm& norm : norms) total = std::hypot(total, number_in(norm.total));
  const Ranks& ranks = context_.parts.ranks();
  const GuardedValues values = guarded_values(step.loss_parts(), total, ranks);
  // Losses may follow the update of one of several.
  const bool are_all = parts.size() == context_.parts.optimizers().size();
  StepJudgement judgement = guard_->judge(
      {.step = context_.state.step,
       .loss = are_all ? std::optional(values.loss) : std::nullopt,
       .grad_norm = values.grad_norm,
       .optimizer = are_all ? std::string_view() : parts.front()->name(),
       .samples = [&] { return samples_of_ranks(numbers_of(step.micro_batches), ranks); }});
  if (judgement.verdict == StepVerdict::good) return true;
  // The step is logged, whoever asked for its norms.
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i]->has_gradients()) note_norm(step.result, *parts[i], norms[i].total);
  }
  step.is_undone = judgement.verdict == StepVerdict::undo;
  if (step.is_undone) scaled_ = {};  // a step of this number comes again
  std::string& told = step.result.guarded_by;
  if (!told.empty()) told += "; ";
  if (!are_all) told += fmt::format("update of {}: ", parts.front()->name());
  if (are_all && step.has_moved) told += "last update: ";
  told += judgement.reason;
  return false;
}

void WeightUpdate::update(OngoingStep& step, const SchedulePoint& point,
                          std::span<const OptimizerPart> optimizers) {
  const at::NoGradGuard no_grad;
  const bool is_unwatched = context_.parts.late_verdict().has_value();
  if (is_unwatched) {
    // A device that is behind is waited for here.
    const Stopwatch stopwatch(context_.time.forward_backward);
    settle();
  }
  Parts parts;
  parts.reserve(optimizers.size());
  for (const OptimizerPart& part : optimizers) parts.push_back(&part);
  const auto factor_of = [&](const OptimizerPart& part) {
    return part.lr_scheduler->factor(point.at, point.end.value_or(0));
  };
  for (const OptimizerPart* part : parts) {
    note_lr(step.result, *part, part->optimizer->base_lr() * factor_of(*part));
  }
  // Moves the weights, unless `skip` is 1.
  const GradientNorm not_measured;
  const auto move = [&](const std::vector<GradientNorm>& norms, const at::Tensor& skip) {
    for (size_t i = 0; i < parts.size(); ++i) {
      clip(*parts[i], norms.empty() ? not_measured : norms[i]);
      parts[i]->optimizer->step_by(factor_of(*parts[i]), skip);
    }
  };
  if (is_unwatched) {
    update_unwatched(step, parts, move);
  } else {
    update_now(step, parts, move);
  }
  for (const OptimizerPart* part : parts) {
    for (const auto& parameter : part->parameters) parameter.tensor.mutable_grad().reset();
  }
}

void WeightUpdate::update_now(OngoingStep& step, const Parts& parts, const Move& move) {
  std::string loss_problem;
  if (rules_.stop_on_nonfinite_loss && !context_.parts.scaler()) {
    // On a GPU it waits for them here.
    const Stopwatch stopwatch(context_.time.forward_backward);
    loss_problem = nonfinite_loss_of(step);
  }
  const Stopwatch stopwatch(context_.time.update);
  enter(context_.parts.ranks(), context_.state.step, "update");
  context_.errors.explaining_memory("update", [&] {
    if (step.is_undone) return;  // by an update before this one
    if (!unscale(step, parts)) return;
    const std::vector<GradientNorm> norms = measure_gradients(step, parts);
    if (rules_.stop_on_nonfinite_loss && !(guard_ != nullptr && guard_->takes_nonfinite())) {
      const auto is_finite = [](const auto& norm) { return std::isfinite(number_in(norm.total)); };
      refuse_nonfinite({.loss_problem = loss_problem,
                        .is_norm_finite = std::ranges::all_of(norms, is_finite),
                        .gradient_problem = [&] { return nonfinite_gradient_of(norms, parts); },
                        .origin = [&] { return search_.origin_of(step.micro_batches); },
                        .samples = [&] { return numbers_of(step.micro_batches); }},
                       context_.parts.ranks());
    }
    if (!passes_guard(step, parts, norms)) return;
    move(norms, {});
    step.has_moved = true;
    if (context_.parts.scaler()) count_update(context_.state.step, /*overflowed=*/false);
  });
  step.result.is_skipped = !step.result.guarded_by.empty() && !step.has_moved;
}

void WeightUpdate::update_unwatched(OngoingStep& step, const Parts& parts, const Move& move) {
  const Stopwatch stopwatch(context_.time.update);
  enter(context_.parts.ranks(), context_.state.step, "update");
  step.has_moved = true;  // unless the device finds a reason not to
  StepParts& of_step = context_.parts;
  context_.errors.explaining_memory("update", [&] {
    auto& scaler = of_step.scaler();
    LateVerdict::Step judged{.number = context_.state.step,
                             .samples = numbers_of(step.micro_batches)};
    if (scaler) {
      judged.overflow = unscale_there(parts);
      judged.scale = scaler->scale_there();
      judged.good_steps = scaler->good_steps_there();
    } else if (rules_.stop_on_nonfinite_loss) {
      judged.loss_parts = step.loss_parts();
    }
    std::vector<GradientNorm> norms = measure_gradients(step, parts);
    // Without gradients they are in host memory.
    for (GradientNorm& norm : norms) norm.total = norm.total.to(of_step.device());
    if (!scaler && !rules_.stop_on_nonfinite_loss) return move(norms, {});
    judged.norms = norms;
    judged_ = parts;
    move(norms, of_step.late_verdict()->judge(std::move(judged)));
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
      count_update(judged->number, judged->overflowed);
      if (judged->overflowed) return refuse_small_scale(scale, origin);
    }
    if (!rules_.stop_on_nonfinite_loss) return;
    refuse_nonfinite(
        {.loss_problem = judged->loss_problem,
         .is_norm_finite = judged->is_norm_finite,
         .gradient_problem = [&] { return nonfinite_gradient_of(judged->norms, judged_); },
         .origin = origin,
         .samples = [&] { return judged->samples; }},
        parts.ranks());
  });
}

}  // namespace phalanx
