// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/idle_tasks.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "trainer/config/syntax/argument.h"

namespace phalanx {

std::optional<IdleTasks> idle_tasks(const VariableLookup& lookup,
                                    std::span<const std::string> command) {
  constexpr int64_t kMostTasks = std::numeric_limits<int32_t>::max();
  const Variables variables(lookup);
  // A step is what srun starts; one of a single task is meant so.
  if (!variables.has("SLURM_JOB_ID") || variables.has("SLURM_STEP_ID")) return std::nullopt;
  const int64_t tasks = variables.optional_number("SLURM_NTASKS", 1, kMostTasks).value_or(1);
  if (tasks == 1) return std::nullopt;
  std::string line = "srun -K";
  for (const std::string& word : command) line += " " + config::shell_word(word);
  return IdleTasks{
      .warning = fmt::format(
          "this Slurm job has {} tasks, and its script has started one process, without srun: the "
          "cores and GPUs of the other tasks are idle. Start a rank in each task, or set "
          "launcher.name=alone if one rank is meant:",
          tasks),
      .command = line};
}

}  // namespace phalanx
