// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/slurm_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <random>
#include <string>

namespace phalanx {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::string text;
  std::array<char, 4096> buffer;
  while (const size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) {
    text.append(buffer.data(), size);
  }
  return text;
}

TEST(ShellQuoted, WordsSurviveLiterally) {
  EXPECT_EQ(shell_quoted("optimizer.lr=1e-3"), "optimizer.lr=1e-3");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  std::mt19937 random(3);
  const std::string letters = "ab '\"$`\\(){}[]*?~!#&|;<>=\t\n";
  for (int i = 0; i < 100; ++i) {
    std::string word;
    for (unsigned length = random() % 12; length > 0; --length) {
      word += letters[random() % letters.size()];
    }
    EXPECT_EQ(output_of("printf %s " + shell_quoted(word)), word);
  }
}

TEST(SlurmScript, AsksForWhatIsGiven) {
  const std::string script = slurm_script({.name = "my",
                                           .nodes = 2,
                                           .tasks_per_node = 4,
                                           .save_before = 60,
                                           .cores = 8,
                                           .takes_gpus = true,
                                           .options = {"--gpus-per-node=4", "--time=12:00:00"},
                                           .setup = "my modules.sh",
                                           .container = "image.sif",
                                           .command = {"/a b/trainer", "train", "my.yaml"}});
  for (const char* line :
       {"#!/bin/bash\n", "#SBATCH --nodes=2\n", "#SBATCH --ntasks-per-node=4\n",
        "#SBATCH --cpus-per-task=8\n", "#SBATCH --gpus-per-node=4\n", "#SBATCH --time=12:00:00\n",
        "#SBATCH --requeue\n", "#SBATCH --signal=B:USR2@60\n", "OMP_NUM_THREADS=8\n",
        "\n. 'my modules.sh'\n",
        "srun --kill-on-bad-exit=1 apptainer exec --nv image.sif '/a b/trainer' train my.yaml &\n",
        "\"$code\" -eq 140 ]"}) {
    EXPECT_THAT(script, HasSubstr(line));
  }
}

TEST(SlurmScript, OfAJobThatIsNotRequeuedIsItsStep) {
  const std::string script =
      slurm_script({.name = "my", .save_before = 0, .command = {"trainer", "train", "my.yaml"}});
  EXPECT_THAT(script, HasSubstr("\nexec srun --kill-on-bad-exit=1 trainer train my.yaml\n"));
  EXPECT_THAT(script, Not(HasSubstr("requeue")));
}

}  // namespace
}  // namespace phalanx
