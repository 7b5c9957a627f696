// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/train_step.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <exception>

#include "trainer/api/task.h"
#include "trainer/step/activity.h"
#include "trainer/step/loss_parts.h"
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
                     const KnownSamples& samples)
    : context_(context),
      rules_(rules),
      samples_(samples),
      search_(context, samples),
      ongoing_{.metrics = {declared_metrics(context.parts.task_model().task()), Phase::train}},
      update_(context, rules, search_) {}

Loss TrainStep::forward(const Batch& batch) {
  const Stopwatch stopwatch(context_.time.forward_backward);
  enter(context_.parts.ranks(), context_.state.step, "forward");
  // Gradients of the step's last micro-batch are reduced, with those before in them.
  const bool synchronize = &batch == ongoing_.micro_batches.back().get();
  Loss loss = context_.errors.explaining(
      {.activity = "forward", .batch = &batch, .samples = &samples_},
      [&](TaskModel& model) { return model.forward(batch, context_.state, synchronize); });
  // Outputs are held no longer than the graph does.
  ongoing_.metrics.add(batch, loss.take_metrics());
  return loss;
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
  const Stopwatch stopwatch(context_.time.forward_backward);
  enter(context_.parts.ranks(), context_.state.step, "backward");
  // A step's loss is the mean over all its tokens, so a micro-batch counts by its share of them.
  const auto tokens = static_cast<double>(ongoing_.result.tokens);
  const int64_t counted = batch.counted_tokens();

  const at::NoGradGuard no_grad;
  add_parts(loss, static_cast<double>(counted) / tokens);
  const at::AutoGradMode with_grad(true);
  // The ranks' gradients become their mean, not their sum.
  const auto of_rank = static_cast<double>(counted * context_.parts.ranks().world_size()) / tokens;
  const at::Tensor total = weighed(at_least_single(loss.total()), of_rank);
  const at::Tensor seed = seed_of(total, batch);
  const auto& scaler = context_.parts.scaler();
  const at::Tensor scaled = scaler ? scaler->scale(total) : total;
  try {
    scaled.backward(seed);
  } catch (const std::exception& error) {
    context_.errors.explain(error, {.activity = "backward", .batch = &batch, .samples = &samples_},
                            /*again=*/{});
    throw;
  }
  context_.parts.task_model().end_backward();
}

// One, or NaN for a loss of this rank that is not finite: the gradients are then NaN on all ranks,
// and each of them knows by their norm, before anything moves, without another exchange.
at::Tensor TrainStep::seed_of(const at::Tensor& loss, const Batch& batch) const {
  const bool is_told = rules_.stop_on_nonfinite_loss && !context_.parts.scaler() &&
                       !context_.parts.ranks().is_single_rank();
  if (!is_told || batch.counted_tokens() == 0) return {};
  // It looks for the first NaN of a backward pass: this one would be it.
  if (torch::autograd::AnomalyMode::is_enabled()) return {};
  const at::NoGradGuard no_grad;
  return loss.detach().mul(0).add(1);
}

}  // namespace phalanx
