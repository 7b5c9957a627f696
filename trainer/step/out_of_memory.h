// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/api/task_model.h"

namespace phalanx {

/// Whether memory has ended, on the host or on a GPU.
bool is_out_of_memory(const std::exception& error);

/// What was held when memory ended, by kind and unit, on a GPU also what its allocator and others
/// hold now, and what needs less. `where`: "step 5,
/// forward"; `optimizer`: nullptr if there is none; `advice`: options, each with what it makes
/// smaller.
std::string explain_out_of_memory(const std::exception& error, std::string_view where,
                                  const TaskModel& task_model, Optimizer* optimizer,
                                  const std::vector<std::string>& advice);

}  // namespace phalanx
