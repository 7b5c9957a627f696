// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/checkpoint/load/load.h"

namespace phalanx {

class Console;
class ModelBase;
class Ranks;
class TaskModel;

/// A source of first weights, and what it fills of a model, without the modules of a task that only
/// one of them has, and those that have a source of their own (TaskModule::load_from).
struct SharedModules {
  Checkpoint source;
  std::vector<ShardedTensorView> views;
  std::vector<std::string> notes;  ///< What was left out, for the user, one line each.
};

/// `source` has our names; `views` are those of `model` that it is to fill.
SharedModules shared_modules(const Checkpoint& source, std::vector<ShardedTensorView> views,
                             ModelBase& model);

/// Fills those of the task's modules that name weights of their own, and shows on the console how
/// far that is. Returns what was taken, a text each: "task.teacher: my_gpt2: 148 tensors". Every
/// rank calls it. Throws UserError, CheckpointError.
std::vector<std::string> load_task_modules(Console& console, const Ranks& ranks,
                                           const TaskModel& model);

}  // namespace phalanx
