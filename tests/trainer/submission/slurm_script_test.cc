// SPDX-License-Identifier: Apache-2.0
#include "trainer/submission/slurm_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace phalanx {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(SlurmScript, AsksForWhatIsGiven) {
  const std::string script = slurm_script({.name = "my",
                                           .nodes = 2,
                                           .tasks_per_node = 4,
                                           .save_before = 60,
                                           .cores = 8,
                                           .takes_gpus = true,
                                           .options = {"--gpus-per-node=4", "--time=12:00:00"},
                                           .variables = {"LINES=[\"a b\"]"},
                                           .setup = "my modules.sh",
                                           .container = "image.sif",
                                           .command = {"/a b/trainer", "train", "my.yaml"}});
  for (const char* line :
       {"#!/bin/bash\n", "#SBATCH --nodes=2\n", "#SBATCH --ntasks-per-node=4\n",
        "#SBATCH --cpus-per-task=8\n", "#SBATCH --gpus-per-node=4\n", "#SBATCH --time=12:00:00\n",
        "#SBATCH --requeue\n", "#SBATCH --signal=B:USR2@60\n", "OMP_NUM_THREADS=8\n",
        "\nexport 'LINES=[\"a b\"]'\n",
        "\n. 'my modules.sh'\n",
        "srun --kill-on-bad-exit=1 --wait=600 apptainer exec --nv image.sif '/a b/trainer' train "
        "my.yaml &\n",
        "\"$code\" -eq 140 ]"}) {
    EXPECT_THAT(script, HasSubstr(line));
  }
}

TEST(SlurmScript, OfAJobThatIsNotRequeuedIsItsStep) {
  const std::string script =
      slurm_script({.name = "my", .save_before = 0, .command = {"trainer", "train", "my.yaml"}});
  EXPECT_THAT(script,
              HasSubstr("\nexec srun --kill-on-bad-exit=1 --wait=600 trainer train my.yaml\n"));
  EXPECT_THAT(script, Not(HasSubstr("requeue")));
}

TEST(SlurmScript, OfAnArrayHasARunForEachTask) {
  const std::string script =
      slurm_script({.name = "my",
                    .keeps_rank_logs = true,
                    .command = {"trainer", "train", "my.yaml"},
                    .array = {{.line = 2, .words = {"seed=1"}},
                              {.line = 4, .words = {"exp_name=$(a) 'b'", "seed=2"}}},
                    .array_limit = 1});
  for (const char* line : {"#SBATCH --array=0-1%1\n", "#SBATCH --output=my-%A_%a.log\n",
                           "\n  0) run=(seed=1) ;;  # line 2\n",
                           "\n  1) run=('exp_name=$(a) '\\''b'\\''' seed=2) ;;  # line 4\n",
                           "\nsrun --kill-on-bad-exit=1 --wait=600 --output=my-%A_%a-%t.log "
                           "--open-mode=append trainer train "
                           "my.yaml \"${run[@]}\" &\n",
                           "scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\"\n"}) {
    EXPECT_THAT(script, HasSubstr(line));
  }
}

}  // namespace
}  // namespace phalanx
