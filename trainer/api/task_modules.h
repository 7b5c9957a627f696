// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/model_base.h"
#include "trainer/api/task_module.h"

namespace phalanx {

class AnyTask;

/// What the names of a task's modules begin with: "task.critic.weight".
inline constexpr std::string_view kTaskPrefix = "task.";

/// Whether a dotted name of a parameter or module is of a task's modules.
inline bool is_of_task(std::string_view name) { return name.starts_with(kTaskPrefix); }

/// "critic" of "task.critic.weight", which is of a task.
std::string_view task_module_of(std::string_view name);

/// Has the task build its modules, and registers them in the model; once for a model, before its
/// parameters get their values. Those that are not trained require no gradient from then on, and
/// compute as in evaluation. Throws UserError for a model with a child `task` of its own, and for
/// modules that cannot be told apart, or are parts of the model. They may share parameters with it
/// and with each other, where both are trained.
void add_task_modules(ModelBase& model, AnyTask& task);

/// Throws UserError for a model with a child `task` of its own, whose tensors would be taken for a
/// task's.
void require_no_task_child(ModelBase& model);

/// The modules that a model has of a task, in their order.
std::vector<TaskModule> task_modules(ModelBase& model);

/// One line a module: "critic: 769 parameters", "teacher: 124439808 parameters, not trained".
std::vector<std::string> describe_task_modules(ModelBase& model);

}  // namespace phalanx
