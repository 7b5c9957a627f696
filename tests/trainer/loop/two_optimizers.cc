// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/loop/two_optimizers.h"

#include "trainer/api/parameters.h"

namespace phalanx::tiny {
namespace {

using Batches = std::vector<std::unique_ptr<Batch>>;

// The micro-batches of all ranks.
Batches next_batches(const std::vector<std::unique_ptr<BatchSource>>& sources, int64_t of_each) {
  Batches batches;
  for (const auto& source : sources) {
    for (int64_t i = 0; i < of_each; ++i) batches.push_back(source->next());
  }
  return batches;
}

int64_t tokens_in(const Batches& batches) {
  int64_t tokens = 0;
  for (const auto& batch : batches) tokens += batch->tokens;
  return tokens;
}

void drop_gradients(ModelBase& model) {
  for (const auto& parameter : named_parameters(model)) parameter.tensor.mutable_grad().reset();
}

}  // namespace

std::vector<double> gan_by_hand(const HandOptions& options) {
  const auto model = make_model();
  to_double(*model);
  const TwoOptimizers two;
  const auto parameters = named_parameters(*model);
  two.generator->bind({{.label = "weight", .parameters = {parameters[0]}}});
  two.critic->bind({{.label = "bias", .parameters = {parameters[1]}}});
  std::vector<std::unique_ptr<BatchSource>> sources;
  for (const int64_t samples : options.samples) {
    Regression task({.data = {.samples = samples}});
    sources.push_back(task.build_data(Phase::train, {.batch_size = options.batch_size}));
    sources.back()->start_epoch(0, 0);
  }
  Regression task;
  for (int64_t step = 1; step <= options.steps; ++step) {
    const Batches batches = next_batches(sources, options.accumulation);
    const auto tokens = static_cast<double>(tokens_in(batches));
    const auto move = [&](Descent& optimizer, double lr, double sign) {
      for (const auto& batch : batches) {
        const double share = sign * static_cast<double>(batch->tokens) / tokens;
        const auto& samples = static_cast<const Samples&>(*batch);
        task.compute_loss(*model->as<Regressor>(), samples, {}).total().mul(share).backward();
      }
      optimizer.step(lr);
      drop_gradients(*model);
    };
    const double critic_lr = 0.05 * TwoOptimizers::critic_factor(step, 0);
    move(*two.critic, critic_lr, -1);
    move(*two.critic, critic_lr, -1);
    move(*two.generator, 0.1, 1);
  }
  return weights_of(*model);
}

}  // namespace phalanx::tiny
