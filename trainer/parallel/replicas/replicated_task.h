// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <vector>

namespace phalanx {

class AnyTask;
class ModelBase;

/// A model whose replicas compute a task's training losses together.
struct ReplicatedModel {
  std::shared_ptr<ModelBase> original;
  std::vector<std::shared_ptr<ModelBase>> replicas;  ///< Built as it was; one for each device.
  std::vector<at::Device> devices;                   ///< The first is the original's.
};

/// The task with its training data cut into parts for the replicas, and with the loss of such a
/// micro-batch put together of theirs: the mean over the tokens of all parts, with all metrics.
/// Anything else (validations, predictions, samples, hooks, passes of TrainingStep::run) sees the
/// original model alone. The task's `loss` is called from several threads at a time. A
/// `training_step` that reads its micro-batches throws UserError in its first step. `name` is the
/// task's, for errors.
std::shared_ptr<AnyTask> replicated(std::shared_ptr<AnyTask> task, ReplicatedModel model,
                                    std::string name);

}  // namespace phalanx
