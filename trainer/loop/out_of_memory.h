// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "trainer/api/optimizer.h"
#include "trainer/api/task_model.h"
#include "trainer/config/tree/forward.h"

namespace phalanx {

/// Whether memory has ended, on the host or on a GPU.
bool is_out_of_memory(const std::exception& error);

/// What was held when there was no memory left, by kind and unit, and which of the config's options
/// would need less. `where`: "step 5, forward".
std::string explain_out_of_memory(const std::exception& error, std::string_view where,
                                  const TaskModel& task_model, Optimizer& optimizer,
                                  const config::Node& resolved_config);

}  // namespace phalanx
