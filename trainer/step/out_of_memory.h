// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/task_model.h"
#include "trainer/step/optimizer_part.h"

namespace phalanx {

/// Whether memory has ended, on the host or on a GPU.
bool is_out_of_memory(const std::exception& error);

/// What was held when memory ended, by kind and unit, on a GPU also what its allocator and others
/// hold now, and what needs less. `where`: "step 5,
/// forward"; `optimizers`: empty where nothing is trained; `advice`: options, each with what it
/// makes smaller.
std::string explain_out_of_memory(const std::exception& error, std::string_view where,
                                  const TaskModel& task_model,
                                  std::span<const OptimizerPart> optimizers,
                                  const std::vector<std::string>& advice);

}  // namespace phalanx
