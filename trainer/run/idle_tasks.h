// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>

#include "trainer/ranks/environment/variables.h"

namespace phalanx {

/// What to tell of tasks that a Slurm job has and nobody has started.
struct IdleTasks {
  std::string warning;
  std::string command;  ///< The line that starts a rank in each.
};

/// For a process that computes alone in a Slurm job of several tasks, because its script calls the
/// program without srun; nullopt where that is not so. `command` is this process's, the program
/// first. Throws UserError for variables that are no numbers.
std::optional<IdleTasks> idle_tasks(const VariableLookup& lookup,
                                    std::span<const std::string> command);

}  // namespace phalanx
