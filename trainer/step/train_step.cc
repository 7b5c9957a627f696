// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/train_step.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "trainer/api/task.h"
#include "trainer/step/activity.h"
#include "trainer/step/loss_parts.h"
#include "trainer/step/own_pass.h"
#include "trainer/step/same_pass.h"
#include "trainer/step/stopwatch.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

// Losses are summed, weighed and scaled in single precision at least.
at::Tensor at_least_single(const at::Tensor& value) {
  return at::isReducedFloatingType(value.scalar_type()) ? value.to(at::kFloat) : value;
}

at::Tensor weighed(const at::Tensor& value, double weight) {
  return weight == 1 ? value : value.mul(weight);
}

// What a micro-batch's mean adds to the step's. One without a share adds nothing, whatever it is:
// not a number times 0 would be none either.
at::Tensor part_of_mean(const at::Tensor& mean, double share) {
  const at::Tensor value = at_least_single(mean.detach());
  return share == 0 ? tensors::zeros(value.sizes(), value.options()) : weighed(value, share);
}

}  // namespace

TrainStep::TrainStep(const PassContext& context, const UpdateRules& rules,
                     const KnownSamples& samples, StepHooks& hooks)
    : context_(context),
      rules_(rules),
      samples_(samples),
      hooks_(hooks),
      search_(context, samples),
      ongoing_{.metrics = {declared_metrics(context.parts.task_model().task()), Phase::train}},
      update_(context, rules, search_) {}

void TrainStep::run_task(const SchedulePoint& point) {
  point_ = point;
  progress_ = {};
  const TaskModel& task_model = context_.parts.task_model();
  task_model.task().run_step(*this, task_model.model());
  if (progress_.is_over) return;
  if (progress_.has_updated) return end_after_updates_by_name();
  throw std::logic_error(fmt::format(
      "the task's training_step has neither updated nor skipped in step {}", context_.state.step));
}

void TrainStep::run_as_usual() {
  progress_.is_usual = true;
  for (const auto& batch : ongoing_.micro_batches) backward(forward(*batch), *batch);
  update();
}

double TrainStep::weight_of(const Batch& batch) const {
  return static_cast<double>(batch.counted_tokens() * context_.parts.shares()) /
         static_cast<double>(ongoing_.result.tokens);
}

void TrainStep::begin_forward(bool synchronize) {
  if (progress_.is_over) throw std::logic_error("a pass of a step that is updated or skipped");
  const bool has_gradients = at::GradMode::is_enabled();
  if (!progress_.is_usual) {
    const Stopwatch stopwatch(context_.time.forward_backward);
    require_same_pass(context_.parts, context_.state.step,
                      begins_forward(has_gradients, synchronize));
  }
  if (has_gradients) progress_.forward_reduces = synchronize;
}

void TrainStep::begin_backward() {
  if (progress_.is_over) throw std::logic_error("a pass of a step that is updated or skipped");
  if (!progress_.is_usual) {
    const Stopwatch stopwatch(context_.time.forward_backward);
    require_same_pass(context_.parts, context_.state.step, begins_backward());
  }
  progress_.has_gone_back = true;
  progress_.are_gradients_local = !progress_.forward_reduces;
}

Loss TrainStep::forward(const Batch& batch) {
  hooks_.before_forward(batch);
  // Gradients of the step's last micro-batch are reduced, with those before in them.
  const bool synchronize = &batch == ongoing_.micro_batches.back().get();
  begin_forward(synchronize);
  Loss loss = [&] {
    const Stopwatch stopwatch(context_.time.forward_backward);
    enter(context_.parts.ranks(), context_.state.step, "forward");
    Loss of_batch = context_.errors.explaining(
        {.activity = "forward", .batch = &batch, .samples = &samples_},
        [&](TaskModel& model) { return model.forward(batch, context_.state, synchronize); });
    measure(batch, of_batch);
    return of_batch;
  }();
  hooks_.after_loss(batch, loss);
  return loss;
}

void TrainStep::measure(const Batch& batch, Loss& loss) {
  // Outputs are held no longer than the graph does, whoever reads them.
  const std::vector<FedMetric> fed = loss.take_metrics();
  if (!ongoing_.are_metrics_requested) return;
  context_.errors.explaining_memory("metrics", [&] { ongoing_.metrics.add(batch, fed); });
}

std::vector<at::Tensor> TrainStep::run(c10::function_ref<std::vector<at::Tensor>()> pass,
                                       bool synchronize) {
  begin_forward(synchronize);
  const Stopwatch stopwatch(context_.time.forward_backward);
  enter(context_.parts.ranks(), context_.state.step, "forward");
  const bool has_grad = at::GradMode::is_enabled();
  try {
    return context_.parts.task_model().run(pass, synchronize);
  } catch (const std::exception& error) {
    // The pass may take gradients by itself: it is called again as it was.
    const auto again = [&](TaskModel& model) {
      const at::AutoGradMode as_it_was(has_grad);
      model.run(pass, synchronize);
    };
    explain_own_pass(error,
                     {.activity = "forward",
                      .micro_batches = ongoing_.micro_batches,
                      .samples = &samples_,
                      .again = again},
                     context_);
    throw;
  }
}

void TrainStep::add_parts(const Loss& loss, double share) {
  auto& sums = ongoing_.result.loss_parts;
  if (sums.empty()) {
    for (const auto& [name, value] : loss.parts()) {
      sums.emplace_back(name, part_of_mean(value, share));
    }
    return;
  }
  require_same_parts(sums, loss);
  for (size_t i = 0; i < loss.parts().size(); ++i) {
    sums[i].second += part_of_mean(loss.parts()[i].second, share);
  }
}

void TrainStep::backward(const Loss& loss, const Batch& batch) {
  begin_backward();
  const Stopwatch stopwatch(context_.time.forward_backward);
  enter(context_.parts.ranks(), context_.state.step, "backward");
  // What `forward` gave has no metrics any more: these are of a task that runs its own passes.
  if (ongoing_.are_metrics_requested && !loss.metrics().empty()) {
    context_.errors.explaining_memory("metrics",
                                      [&] { ongoing_.metrics.add(batch, loss.metrics()); });
  }
  // A step's loss is the mean over all its tokens, so a micro-batch counts by its share of them.
  const int64_t counted = batch.counted_tokens();
  const at::NoGradGuard no_grad;
  add_parts(loss, static_cast<double>(counted) / static_cast<double>(ongoing_.result.tokens));
  const at::AutoGradMode with_grad(true);
  // The ranks' gradients become their mean, not their sum.
  differentiate(weighed(at_least_single(loss.total()), weight_of(batch)), counted != 0,
                /*retain_graph=*/false,
                {.activity = "backward", .batch = &batch, .samples = &samples_});
}

void TrainStep::backward(const at::Tensor& loss, const BackwardOptions& options) {
  SetAside others = gradients_not_of(options.into);
  begin_backward();
  const Stopwatch stopwatch(context_.time.forward_backward);
  enter(context_.parts.ranks(), context_.state.step, "backward");
  const at::AutoGradMode with_grad(true);
  const at::Tensor total = weighed(at_least_single(loss), options.weight);
  {
    const at::NoGradGuard no_grad;
    add_to_part(ongoing_.own_parts, options.name,
                part_of_mean(loss, options.weight / static_cast<double>(context_.parts.shares())));
  }
  differentiate(total, options.weight != 0, options.retain_graph, {.activity = "backward"});
  others.put_back();
}

SetAside TrainStep::gradients_not_of(const std::vector<std::string>& optimizers) const {
  const StepParts& parts = context_.parts;
  const bool has_engine = parts.task_model().has_engine();
  SetAside others(/*copies=*/has_engine);
  if (optimizers.empty()) return others;
  for (const std::string& name : optimizers) parts.optimizer(name);  // or throws
  // Engines keep such gradients for all parameters alike, until a pass reduces them.
  const bool has_local = progress_.has_gone_back && progress_.are_gradients_local;
  if (has_engine && (!progress_.forward_reduces || has_local)) {
    throw std::logic_error(
        "BackwardOptions::into: in DDP and FSDP it holds for a pass that reduces gradients, with "
        "none before it that did not. Let it follow a forward pass of the last micro-batch, or a "
        "run that synchronizes");
  }
  for (const OptimizerPart& part : parts.optimizers()) {
    if (std::ranges::find(optimizers, part.name()) == optimizers.end()) {
      others.take(part.parameters);
    }
  }
  return others;
}

void TrainStep::differentiate(const at::Tensor& loss, bool counts, bool retain_graph,
                              const PassWork& work) {
  const at::Tensor seed = seed_of(loss, counts);
  const auto& scaler = context_.parts.scaler();
  const at::Tensor scaled = scaler ? scaler->scale(loss) : loss;
  TaskModel& task_model = context_.parts.task_model();
  const std::optional<int64_t> passes_before = task_model.backward_passes();
  try {
    scaled.backward(seed, retain_graph);
  } catch (const std::exception& error) {
    if (work.batch != nullptr) {
      context_.errors.explain(error, work, /*again=*/{});
    } else {
      explain_own_pass(error,
                       {.activity = work.activity,
                        .micro_batches = ongoing_.micro_batches,
                        .samples = &samples_},
                       context_);
    }
    throw;
  }
  if (passes_before && task_model.backward_passes() == passes_before) {
    throw std::logic_error(
        "a loss that comes from no forward pass: nobody would reduce its gradients. Compute it of "
        "what TrainingStep::forward or run gave");
  }
  task_model.end_backward();
}

// One, or NaN for a loss of this rank that is not finite: the gradients are then NaN on all ranks,
// and each of them knows by their norm, before anything moves, without another exchange.
at::Tensor TrainStep::seed_of(const at::Tensor& loss, bool counts) const {
  const bool is_told = rules_.stop_on_nonfinite_loss && !context_.parts.scaler() &&
                       !context_.parts.ranks().is_single_rank();
  if (!is_told || !counts) return {};
  // It looks for the first NaN of a backward pass: this one would be it.
  if (torch::autograd::AnomalyMode::is_enabled()) return {};
  const at::NoGradGuard no_grad;
  return loss.detach().mul(0).add(1);
}

void TrainStep::log(std::string_view name, const at::Tensor& value, double weight) {
  const at::NoGradGuard no_grad;
  const at::Tensor sum = value.detach().mul(weight);
  auto& values = ongoing_.result.values;
  const auto found = std::ranges::find(values, name, &LoggedValue::name);
  if (found == values.end()) {
    values.push_back({.name = std::string(name), .sum = sum, .weight = weight});
    return;
  }
  found->sum = found->sum.add(sum);
  found->weight += weight;
}

}  // namespace phalanx
