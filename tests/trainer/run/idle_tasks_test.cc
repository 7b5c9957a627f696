// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/idle_tasks.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "trainer/ranks/environment/variables.h"

namespace phalanx {
namespace {

using Recorded = std::map<std::string, std::string>;

std::string warning_in(const Recorded& variables) {
  const std::vector<std::string> command{"trainer", "my runs.yaml", "optimizer.lr=1e-3"};
  const VariableLookup lookup = [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  const auto found = idle_tasks(lookup, command);
  return found ? found->warning + "\n" + found->command : "none";
}

TEST(IdleTasks, AreNamedInAScriptWithoutSrun) {
  EXPECT_EQ(warning_in({{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}),
            "this Slurm job has 4 tasks, and its script has started one process, without srun: the "
            "cores and GPUs of the other tasks are idle. Start a rank in each task, or set "
            "launcher.name=alone if one rank is meant:\n"
            "srun -K trainer 'my runs.yaml' optimizer.lr=1e-3");
}

TEST(IdleTasks, AreNoneElsewhere) {
  EXPECT_EQ(warning_in({}), "none");
  EXPECT_EQ(warning_in({{"SLURM_NTASKS", "4"}}), "none");
  EXPECT_EQ(warning_in({{"SLURM_JOB_ID", "1"}}), "none");
  EXPECT_EQ(warning_in({{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "1"}}), "none");
  EXPECT_EQ(warning_in({{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_ID", "0"}}),
            "none");
}

}  // namespace
}  // namespace phalanx
