// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/task_model.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "trainer/api/adapters.h"
#include "trainer/api/batch.h"
#include "trainer/api/common_buffers.h"
#include "trainer/api/parameters.h"
#include "trainer/api/task.h"
#include "trainer/api/task_modules.h"
#include "trainer/api/uncounted_pass.h"

namespace phalanx {
namespace {

// All but those that the engine has all ranks move alike.
void give_back(KeptBuffers& kept, const ParallelEngine* engine) {
  std::vector<std::pair<at::Tensor, at::Tensor>> moved;
  if (const auto* common = dynamic_cast<const CommonBuffers*>(engine)) {
    for (const at::Tensor& buffer : common->common_buffers()) {
      moved.emplace_back(buffer, buffer.detach().clone());
    }
  }
  kept.give_back();
  const at::NoGradGuard no_grad;
  for (const auto& [buffer, value] : moved) buffer.variable_data().copy_(value);
}

}  // namespace

// Another pass may begin before the backward pass of a micro-batch that does not count. It starts
// from the buffers as they were before that micro-batch, and its own changes to them are kept.
Loss TaskModel::forward(const Batch& batch, const State& state, bool synchronize) {
  if (kept_buffers_) give_back(*kept_buffers_, engine_.get());
  const bool keeps = !batch.counts && at::GradMode::is_enabled();
  const auto pass = [&] {
    // Behind the engine's broadcast of rank 0's buffers.
    if (keeps) kept_buffers_.emplace(*model_);
    const UncountedPass uncounted(!batch.counts);
    const Autocast autocast(autocast_);
    return task_->loss(*model_, batch, state);
  };
  Loss loss = engine_ ? engine_->run(pass, synchronize) : pass();
  if (!keeps && kept_buffers_) kept_buffers_.emplace(*model_);
  return loss;
}

std::vector<at::Tensor> TaskModel::run(c10::function_ref<std::vector<at::Tensor>()> pass,
                                       bool synchronize) {
  if (kept_buffers_) give_back(*kept_buffers_, engine_.get());
  const auto forward = [&] {
    const Autocast autocast(autocast_);
    return pass();
  };
  std::vector<at::Tensor> results =
      engine_ ? engine_->run_tensors(forward, synchronize) : forward();
  if (kept_buffers_) kept_buffers_.emplace(*model_);
  return results;
}

// Not before the backward pass: with activation checkpointing that computes the forward pass again.
void TaskModel::end_backward() {
  if (kept_buffers_) give_back(*kept_buffers_, engine_.get());
  kept_buffers_.reset();
}

void TaskModel::use(const std::function<void()>& action) const {
  const Autocast autocast(autocast_);
  if (!engine_) return action();
  engine_->use(action);
}

GradientNorm TaskModel::measure_gradients(const std::vector<NamedParameter>& parameters) const {
  return engine_ ? engine_->measure_gradients(parameters) : phalanx::measure_gradients(parameters);
}

void TaskModel::summon_full_params(const std::function<void()>& look) const {
  if (engine_) return engine_->summon_full_params(look);
  look();
}

std::vector<MemoryUse> TaskModel::memory() const {
  if (engine_) {
    if (auto uses = engine_->memory(); !uses.empty()) return uses;
  }
  MemoryUse parameters{.what = "parameters", .bytes = 0};
  MemoryUse gradients{.what = "gradients", .bytes = 0};
  for (const auto& parameter : named_parameters(*model_)) {
    parameters.bytes += static_cast<int64_t>(parameter.tensor.nbytes());
    const at::Tensor& gradient = parameter.tensor.grad();
    if (gradient.defined()) gradients.bytes += static_cast<int64_t>(gradient.nbytes());
  }
  return {parameters, gradients};
}

std::vector<ShardedTensorView> TaskModel::views() const {
  if (!has_adapters(*model_)) return module_views(model_->module(), engine_.get());
  auto views = parameter_views(model_->module(), /*trained=*/true, engine_.get());
  for (auto& view : parameter_views(model_->module(), /*trained=*/false, engine_.get())) {
    if (is_of_task(view.name)) views.push_back(std::move(view));
  }
  for (auto& view : buffer_views(model_->module())) views.push_back(std::move(view));
  return views;
}

std::vector<ShardedTensorView> TaskModel::base_views() const {
  auto views = parameter_views(model_->module(), /*trained=*/false, engine_.get());
  for (auto& view : buffer_views(model_->module())) views.push_back(std::move(view));
  std::erase_if(views, [](const auto& view) { return is_of_task(view.name); });
  return views;
}

}  // namespace phalanx
