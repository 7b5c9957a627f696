#pragma once

#include <memory>

#include "trainer/core/loss.h"
#include "trainer/core/model_base.h"
#include "trainer/core/task.h"

namespace phalanx {

/// A task and the model it drives as one callable: batch and state in, loss out. What the loop
/// differentiates, and what data parallelism wraps (ml's TaskModel).
class TaskModel {
 public:
  TaskModel(std::shared_ptr<AnyTask> task, std::shared_ptr<ModelBase> model)
      : task_(std::move(task)), model_(std::move(model)) {}

  Loss forward(const Batch& batch, const State& state) const {
    return task_->loss(*model_, batch, state);
  }

  AnyTask& task() const { return *task_; }
  ModelBase& model() const { return *model_; }

 private:
  std::shared_ptr<AnyTask> task_;
  std::shared_ptr<ModelBase> model_;
};

}  // namespace phalanx
