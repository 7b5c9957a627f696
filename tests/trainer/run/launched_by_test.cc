// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/launched_by.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Words = std::vector<std::string>;
using Set = std::map<std::string, std::string>;

std::vector<LaunchLine> lines_of(const LaunchedProcess& process, const Set& variables) {
  return lines_of_launcher(process, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const Words kCommand = {"trainer", "my.yaml", "seed=1"};

LaunchedProcess below(std::vector<Words> ancestors, std::string launcher = "torch") {
  return {.place = {.world_size = 4, .local_world_size = 2, .launcher = std::move(launcher)},
          .command = kCommand,
          .ancestors = std::move(ancestors)};
}

TEST(LaunchedBy, TorchrunOfOneNodeIsItsOwnLine) {
  const LaunchedProcess process = below({{"python3", "/bin/torchrun", "--nproc-per-node=2",
                                          "--no-python", "trainer", "my.yaml", "seed=1"},
                                         {"bash"}});
  EXPECT_THAT(
      lines_of(process, {{"TORCHELASTIC_RUN_ID", "none"}, {"GROUP_WORLD_SIZE", "1"}}),
      ElementsAre(LaunchLine{
          "", {"python3", "/bin/torchrun", "--nproc-per-node=2", "--no-python", "trainer"}}));
}

TEST(LaunchedBy, TorchrunOfSeveralNodesHasALineForEach) {
  const Set variables{{"TORCHELASTIC_RUN_ID", "none"}, {"GROUP_WORLD_SIZE", "2"}};
  const auto below_torchrun = [](Words flags) {
    Words words{"torchrun"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--no-python", "trainer", "my.yaml", "seed=1"});
    return below({words});
  };
  auto lines = lines_of(below_torchrun({"--nnodes=2", "--node_rank", "0"}), variables);
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[1].place, "node 1");
  EXPECT_THAT(lines[1].words,
              ElementsAre("torchrun", "--nnodes=2", "--node_rank", "1", "--no-python", "trainer"));
  lines = lines_of(below_torchrun({"--nnodes=2", "--node-rank=0"}), variables);
  EXPECT_THAT(lines[1].words,
              ElementsAre("torchrun", "--nnodes=2", "--node-rank=1", "--no-python", "trainer"));
  // The variable PET_NODE_RANK has said it.
  lines = lines_of(below_torchrun({"--nnodes=2"}), variables);
  EXPECT_THAT(lines[1].words, ElementsAre("env", "PET_NODE_RANK=1", "torchrun", "--nnodes=2",
                                          "--no-python", "trainer"));
  lines = lines_of(below_torchrun({"--nnodes=1:2", "--rdzv-backend", "c10d"}), variables);
  EXPECT_THAT(lines, ElementsAre(LaunchLine{"each node",
                                            {"torchrun", "--nnodes=1:2", "--rdzv-backend", "c10d",
                                             "--no-python", "trainer"}}));
}

TEST(LaunchedBy, TorchrunAboveAScriptIsMadeOfItsVariables) {
  const Set variables{{"TORCHELASTIC_RUN_ID", "none"}, {"GROUP_WORLD_SIZE", "2"},
                      {"LOCAL_WORLD_SIZE", "2"},       {"MASTER_ADDR", "a"},
                      {"MASTER_PORT", "29500"},        {"TORCHELASTIC_MAX_RESTARTS", "3"}};
  const auto lines = lines_of(below({{"sh", "job.sh"}, {"torchrun", "job.sh"}}), variables);
  ASSERT_EQ(lines.size(), 2);
  EXPECT_THAT(lines[1].words,
              ElementsAre("torchrun", "--nnodes=2", "--node-rank=1", "--master-addr=a",
                          "--master-port=29500", "--nproc-per-node=2", "--max-restarts=3",
                          "--no-python", "trainer"));
}

TEST(LaunchedBy, TheOutermostLineCounts) {
  const Words inner{"timeout", "9", "trainer", "my.yaml", "seed=1"};
  const Words outer{"mpirun", "-n", "4", "timeout", "9", "trainer", "my.yaml", "seed=1"};
  EXPECT_THAT(lines_of(below({inner, outer}, "open_mpi"), {}),
              ElementsAre(LaunchLine{"", {"mpirun", "-n", "4", "timeout", "9", "trainer"}}));
}

TEST(LaunchedBy, ProcessesWithoutSuchALineGoByVariables) {
  const auto line = [](const std::string& launcher, const Set& variables) {
    return lines_of(below({{"bash"}}, launcher), variables).front();
  };
  EXPECT_EQ(line("slurm", {{"SLURM_STEP_NUM_NODES", "2"},
                           {"SLURM_STEP_NUM_TASKS", "4"},
                           {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}}),
            (LaunchLine{
                "", {"srun", "-K", "--nodes=2", "--ntasks=4", "--ntasks-per-node=2", "trainer"}}));
  EXPECT_EQ(line("open_mpi", {{"MASTER_ADDR", "a"}}),
            (LaunchLine{"the first host, with mpirun's options for hosts",
                        {"mpirun", "-n", "4", "-x", "MASTER_ADDR=a", "trainer"}}));
  EXPECT_EQ(
      line("torch", {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}),
      (LaunchLine{"each rank's host, with its own RANK",
                  {"env", "RANK=0", "WORLD_SIZE=4", "MASTER_ADDR=a", "MASTER_PORT=1", "trainer"}}));
}

// The launcher is no process above these: it is not to be taken for one that starts one rank.
TEST(LaunchedBy, WrappersOfEachRankStandBehindTheLauncher) {
  const auto line = [](const Words& wrapper, const std::string& launcher, const Set& variables) {
    Words words = wrapper;
    words.insert(words.end(), kCommand.begin(), kCommand.end());
    return lines_of(below({words, {"slurmstepd"}}, launcher), variables).front().words;
  };
  EXPECT_THAT(line({"/bin/bash", "./wrap.sh"}, "slurm", {{"SLURM_STEP_NUM_TASKS", "4"}}),
              ElementsAre("srun", "-K", "--ntasks=4", "/bin/bash", "./wrap.sh", "trainer"));
  EXPECT_THAT(line({"timeout", "3600"}, "pmi", {}),
              ElementsAre("srun", "-K", "--mpi=pmi2", "--ntasks=4", "timeout", "3600", "trainer"));
  EXPECT_THAT(line({"timeout", "3600"}, "lsf", {}),
              ElementsAre("jsrun", "-n", "4", "timeout", "3600", "trainer"));
  EXPECT_THAT(line({"tini", "--"}, "kubernetes", {}), ElementsAre("tini", "--", "trainer"));
  EXPECT_THAT(line({"timeout", "9"}, "torch", {}),
              ElementsAre("env", "RANK=0", "WORLD_SIZE=4", "timeout", "9", "trainer"));
  EXPECT_THAT(line({"timeout", "9"}, "open_mpi", {}),
              ElementsAre("mpirun", "-n", "4", "timeout", "9", "trainer"))
      << "in a script that mpirun starts";
  EXPECT_THAT(
      line({"timeout", "9"}, "torch", {{"TORCHELASTIC_RUN_ID", "none"}, {"LOCAL_WORLD_SIZE", "4"}}),
      ElementsAre("torchrun", "--nnodes=1", "--nproc-per-node=4", "--no-python", "timeout", "9",
                  "trainer"))
      << "in a script that torchrun starts";
}

TEST(LaunchedBy, NobodyKnownHasNoLine) {
  EXPECT_THAT(lines_of({.place = {}, .command = {}, .ancestors = {}}, {}), IsEmpty());
}

}  // namespace
}  // namespace phalanx
