// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/FunctionRef.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/kept_buffers.h"
#include "trainer/api/loss.h"
#include "trainer/api/model_base.h"
#include "trainer/api/parallel_engine.h"
#include "trainer/precision/autocast.h"

namespace phalanx {

class AnyTask;
struct Batch;
struct State;

/// A task and the model it drives as one callable: batch and state in, loss out. What the loop
/// differentiates, and what data parallelism wraps (ml's TaskModel).
class TaskModel {
 public:
  TaskModel(std::shared_ptr<AnyTask> task, std::shared_ptr<ModelBase> model)
      : task_(std::move(task)), model_(std::move(model)) {}

  /// The loss of a micro-batch. In an engine, its backward reduces the gradients over all ranks if
  /// `synchronize`.
  Loss forward(const Batch& batch, const State& state, bool synchronize = true);

  /// The same of a forward pass that gives tensors: returns those to go on with in their place.
  std::vector<at::Tensor> run(c10::function_ref<std::vector<at::Tensor>()> pass, bool synchronize);

  /// After the backward pass of that loss: gives the model's buffers back what they held before a
  /// micro-batch that does not count. A pass without gradients needs no such end.
  void end_backward();

  /// Calls `action`, which may call the model, without a loss or gradients. All ranks call it, and
  /// the model alike.
  void use(const std::function<void()>& action) const;

  /// A parameter of the model as this rank holds it.
  NamedParameter local(const NamedParameter& parameter) const {
    return engine_ ? engine_->local(parameter) : parameter;
  }

  /// See ParallelEngine.
  void buffers_changed() const {
    if (engine_) engine_->buffers_changed();
  }

  /// See ParallelEngine.
  void summon_full_params(const std::function<void()>& look) const;
  /// See ParallelEngine.
  GradientNorm measure_gradients(const std::vector<NamedParameter>& parameters) const;

  /// The views of all parameters and buffers as this rank holds them, as a checkpoint takes and
  /// fills them. Of a model with adapters: of what is trained, of the task's modules, and of
  /// buffers.
  std::vector<ShardedTensorView> views() const;

  /// The same of what adapters are trained beside: the model without its task's modules.
  std::vector<ShardedTensorView> base_views() const;

  /// The same with its forward pass in lower precision (torch.autocast); none: as it is.
  TaskModel with_autocast(std::optional<AutocastTo> autocast) const {
    TaskModel model = *this;
    model.autocast_ = autocast;
    return model;
  }
  const std::optional<AutocastTo>& autocast() const { return autocast_; }

  /// What the inputs of a batch are cast to; none: nothing.
  std::optional<at::ScalarType> input_dtype() const {
    return engine_ ? engine_->input_dtype() : std::nullopt;
  }

  /// The same task and model in an engine.
  TaskModel wrapped_by(std::shared_ptr<ParallelEngine> engine) const {
    TaskModel wrapped = *this;
    wrapped.engine_ = std::move(engine);
    return wrapped;
  }

  bool has_engine() const { return engine_ != nullptr; }
  /// See ParallelEngine; none for one rank.
  std::optional<int64_t> backward_passes() const {
    return engine_ ? engine_->backward_passes() : std::nullopt;
  }
  /// See ParallelEngine; nothing for one rank.
  std::vector<std::string> description() const {
    return engine_ ? engine_->description() : std::vector<std::string>();
  }
  /// See ParallelEngine; nothing for one rank.
  std::vector<std::string> reduction_order() const {
    return engine_ ? engine_->reduction_order() : std::vector<std::string>();
  }
  void follow_reduction_order(const std::vector<std::string>& names) const {
    if (engine_) engine_->follow_reduction_order(names);
  }
  /// What is held of the model and its gradients now, on this rank.
  std::vector<MemoryUse> memory() const;
  /// None where a model is used without the task that it was trained for.
  bool has_task() const { return task_ != nullptr; }
  AnyTask& task() const { return *task_; }
  ModelBase& model() const { return *model_; }

 private:
  std::shared_ptr<AnyTask> task_;
  std::shared_ptr<ModelBase> model_;
  std::shared_ptr<ParallelEngine> engine_;  ///< None: one rank.
  std::optional<AutocastTo> autocast_;
  std::optional<KeptBuffers> kept_buffers_;  ///< While a micro-batch that does not count is passed.
};

}  // namespace phalanx
