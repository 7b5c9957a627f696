// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/environment/known_launchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/ranks/environment/environment.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Recorded = std::map<std::string, std::string>;

VariableLookup lookup_in(const Recorded& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

Recorded with(Recorded variables, const Recorded& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

std::string error_of(const Recorded& variables, const std::string& launcher = "") {
  try {
    find_environment(lookup_in(variables), launcher);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

// Set in a task of Slurm 22.05: `srun -N2 -n3`, the last one.
const Recorded kSlurm{{"SLURM_JOB_ID", "1"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_PROCID", "2"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_NODEID", "1"},
                      {"SLURM_NTASKS", "3"},
                      {"SLURM_STEP_NUM_TASKS", "3"},
                      {"SLURM_STEP_NUM_NODES", "2"},
                      {"SLURM_TASKS_PER_NODE", "2,1"},
                      {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
                      {"SLURM_JOB_NODELIST", "n[1-2]"},
                      {"SLURM_STEP_NODELIST", "n[1-2]"}};

// Set in a script of Slurm: `sbatch -N2 --ntasks-per-node=2`.
const Recorded kSlurmScript{
    {"SLURM_JOB_ID", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"},
    {"SLURM_NODEID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_NPROCS", "4"},
    {"SLURM_GTIDS", "0"},  {"SLURM_NNODES", "2"}, {"SLURM_JOB_NODELIST", "n[1-2]"}};

// Set by Open MPI 4.1: `mpirun -n 2`, rank 1.
const Recorded kOpenMpi{{"OMPI_COMM_WORLD_RANK", "1"},
                        {"OMPI_COMM_WORLD_SIZE", "2"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                        {"OMPI_COMM_WORLD_NODE_RANK", "1"},
                        {"OMPI_UNIVERSE_SIZE", "2"},
                        {"PMIX_RANK", "1"},
                        {"PMIX_NAMESPACE", "1301020673"}};

// Set by MPICH 4.0: `mpirun -n 2`, rank 1. Intel MPI has the same Hydra.
const Recorded kMpich{{"PMI_RANK", "1"},        {"PMI_SIZE", "2"},        {"PMI_FD", "8"},
                      {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}, {"HYDI_CONTROL_FD", "7"}};

struct Case {
  std::string name;
  Recorded variables;
  std::string launcher;  // Empty: none is found.
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t local_rank = 0;
  int64_t local_world_size = 1;
  std::string master_addr = "";
};

const std::vector<Case> kCases{
    {"slurm, a task a rank", kSlurm, "slurm", 2, 3, 0, 1, "n1"},
    {"slurm, on one node",
     with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "3"},
                   {"SLURM_NODEID", "0"},
                   {"SLURM_LOCALID", "2"},
                   {"SLURM_STEP_NODELIST", "n7"}}),
     "slurm", 2, 3, 2, 3, "127.0.0.1"},
    {"slurm, a task alone", with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "1"}}), ""},
    {"slurm, a job's script", kSlurmScript, ""},
    {"torchrun in a step of slurm",
     with(kSlurm, {{"RANK", "1"},
                   {"WORLD_SIZE", "3"},
                   {"LOCAL_RANK", "1"},
                   {"LOCAL_WORLD_SIZE", "3"},
                   {"MASTER_ADDR", "n1"},
                   {"MASTER_PORT", "29500"},
                   {"TORCHELASTIC_RUN_ID", "a"}}),
     "torch", 1, 3, 1, 3, "n1"},
    {"MASTER_ADDR counts in slurm", with(kSlurm, {{"MASTER_ADDR", "10.0.0.1"}}), "slurm", 2, 3, 0,
     1, "10.0.0.1"},
    {"Open MPI", kOpenMpi, "open_mpi", 1, 2, 1, 2, "127.0.0.1"},
    // Its daemons are tasks of a step: every rank of a node has the daemon's number.
    {"Open MPI in a job of slurm",
     with(kOpenMpi, {{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}}),
     "open_mpi", 1, 2, 1, 2, "127.0.0.1"},
    {"Open MPI on several hosts",
     with(kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}}), "open_mpi", 1, 4, 1,
     2, "node1"},
    {"Open MPI without the size of the host",
     with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", ""}, {"MASTER_ADDR", "node1"}}), "open_mpi", 1,
     2, 1, kFromHosts, "node1"},
    {"Open MPI without local numbers",
     {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"MASTER_ADDR", "node1"}},
     "open_mpi",
     1,
     2,
     kFromHosts,
     kFromHosts,
     "node1"},
    {"Open MPI of one rank",
     {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}},
     "open_mpi",
     0,
     1,
     0,
     1,
     "127.0.0.1"},
    {"MVAPICH without local numbers",
     {{"MV2_COMM_WORLD_RANK", "1"}, {"MV2_COMM_WORLD_SIZE", "2"}, {"MASTER_ADDR", "node1"}},
     "mvapich",
     1,
     2,
     kFromHosts,
     kFromHosts,
     "node1"},
    {"LSF without local numbers",
     {{"JSM_NAMESPACE_RANK", "1"}, {"JSM_NAMESPACE_SIZE", "2"}, {"MASTER_ADDR", "node1"}},
     "lsf",
     1,
     2,
     kFromHosts,
     kFromHosts,
     "node1"},
    {"LSF of one rank",
     {{"JSM_NAMESPACE_RANK", "0"}, {"JSM_NAMESPACE_SIZE", "1"}},
     "lsf",
     0,
     1,
     0,
     1,
     "127.0.0.1"},
    {"Hydra without the size of the host",
     with(kMpich, {{"MPI_LOCALNRANKS", ""}, {"MASTER_ADDR", "node1"}}), "mpich", 1, 2, 1,
     kFromHosts, "node1"},
    {"MPICH", kMpich, "mpich", 1, 2, 1, 2, "127.0.0.1"},
    {"MPICH in a job of slurm",
     with(kMpich, {{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}}),
     "mpich", 1, 2, 1, 2, "127.0.0.1"},
    {"srun --mpi=pmi2", with(kSlurm, {{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"PMI_JOBID", "1.0"}}),
     "slurm", 2, 3, 0, 1, "n1"},
    {"PMI alone",
     {{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"MASTER_ADDR", "n1"}},
     "pmi",
     1,
     3,
     kFromHosts,
     kFromHosts,
     "n1"},
    {"an Indexed Job",
     {{"JOB_COMPLETION_INDEX", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "job-0.job"}},
     "kubernetes",
     1,
     2,
     0,
     1,
     "job-0.job"},
    {"an Indexed Job of runs apart", {{"JOB_COMPLETION_INDEX", "1"}}, ""},
    {"Kubeflow's PyTorchJob",
     {{"RANK", "1"},
      {"WORLD_SIZE", "2"},
      {"MASTER_ADDR", "job-master-0"},
      {"MASTER_PORT", "23456"},
      {"PET_NNODES", "2"},
      {"PET_NODE_RANK", "1"}},
     "torch",
     1,
     2,
     kFromHosts,
     kFromHosts,
     "job-master-0"},
};

class KnownLaunchers : public testing::TestWithParam<Case> {};

TEST_P(KnownLaunchers, GiveThePlaceThatTheirVariablesName) {
  const Case& expected = GetParam();
  const auto place = find_environment(lookup_in(expected.variables));
  ASSERT_EQ(place.has_value(), !expected.launcher.empty()) << expected.name;
  if (!place) return;
  EXPECT_EQ(place->launcher, expected.launcher) << expected.name;
  EXPECT_EQ(place->rank, expected.rank) << expected.name;
  EXPECT_EQ(place->world_size, expected.world_size) << expected.name;
  EXPECT_EQ(place->local_rank, expected.local_rank) << expected.name;
  EXPECT_EQ(place->local_world_size, expected.local_world_size) << expected.name;
  EXPECT_EQ(place->master_addr, expected.master_addr) << expected.name;
  EXPECT_GE(place->master_port, 1) << expected.name;
}

INSTANTIATE_TEST_SUITE_P(Recorded, KnownLaunchers, testing::ValuesIn(kCases));

TEST(KnownLaunchers, TakeOnePortForAJobAndOthersForOthers) {
  const auto port = [](const Recorded& variables) {
    return find_environment(lookup_in(variables))->master_port;
  };
  EXPECT_EQ(port(kSlurm), port(with(kSlurm, {{"SLURM_PROCID", "0"}, {"SLURM_NODEID", "0"}})));
  std::set<uint16_t> ports;
  for (int job = 0; job < 50; ++job) {
    ports.insert(port(with(kSlurm, {{"SLURM_JOB_ID", std::to_string(job)}})));
  }
  EXPECT_EQ(ports.size(), 50U);  // The tasks of an array, on one host.
  EXPECT_EQ(port(with(kSlurm, {{"MASTER_PORT", "1234"}})), 1234);
}

TEST(KnownLaunchers, CanBeForced) {
  const Recorded both = with(kOpenMpi, kSlurm);
  EXPECT_EQ(find_environment(lookup_in(both))->launcher, "open_mpi");
  EXPECT_EQ(find_environment(lookup_in(both), "slurm")->launcher, "slurm");
  EXPECT_THAT(error_of(kOpenMpi, "slurm"), HasSubstr("variable SLURM_PROCID is not set"));
}

TEST(KnownLaunchers, NameWhatContradicts) {
  EXPECT_THAT(error_of(with(kSlurm, {{"WORLD_SIZE", "4"}})),
              HasSubstr("WORLD_SIZE is 4, but srun has started 3 tasks (SLURM_STEP_NUM_TASKS)"));
  const Recorded exported{
      {"RANK", "0"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}};
  EXPECT_THAT(error_of(with(kSlurm, exported)),
              HasSubstr("RANK is 0 and WORLD_SIZE is 3, but srun has started this process as task "
                        "2 of 3"));
  EXPECT_EQ(error_of(with(with(kSlurm, exported), {{"RANK", "2"}})), "none");
  EXPECT_THAT(error_of(with(kSlurm, {{"SLURM_NODEID", "2"}})),
              HasSubstr("SLURM_NODEID is 2, but SLURM_STEP_TASKS_PER_NODE, '2,1', names 2 nodes"));
  EXPECT_THAT(error_of(with(kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "4"}})),
              HasSubstr("-x MASTER_ADDR=node1"));
}

// Ranks that each count themselves as the first would each train alone, in one folder.
TEST(KnownLaunchers, RefuseWhatContradictsTheirOwnCount) {
  const Recorded exported{
      {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}};
  const std::vector<std::pair<std::string, Recorded>> started{
      {"OMPI_COMM_WORLD", kOpenMpi},
      {"PMI", kMpich},
      {"MV2_COMM_WORLD", {{"MV2_COMM_WORLD_RANK", "1"}, {"MV2_COMM_WORLD_SIZE", "2"}}},
      {"JSM_NAMESPACE", {{"JSM_NAMESPACE_RANK", "1"}, {"JSM_NAMESPACE_SIZE", "2"}}}};
  for (const auto& [name, variables] : started) {
    EXPECT_THAT(error_of(with(variables, {{"WORLD_SIZE", "4"}})),
                AllOf(HasSubstr("WORLD_SIZE is 4, but "),
                      HasSubstr(" has started 2 tasks (" + name + "_SIZE): unset it")));
    EXPECT_THAT(error_of(with(variables, exported)),
                AllOf(HasSubstr("RANK is 0 and WORLD_SIZE is 2, but "),
                      HasSubstr(" as task 1 of 2 (" + name + "_RANK, " + name + "_SIZE)")));
    EXPECT_EQ(error_of(with(variables, exported), "torch"), "none") << "which the message offers";
    EXPECT_EQ(error_of(with(with(variables, exported), {{"RANK", "1"}})), "none") << name;
    const Recorded many = with(with(variables, exported), {{"WORLD_SIZE", "8"}});
    EXPECT_THAT(error_of(many), HasSubstr("RANK is 0 and WORLD_SIZE is 8")) << name;
    EXPECT_EQ(error_of(with(many, {{"LOCAL_RANK", "0"}})), "none")
        << "ranks that a task has started";
    EXPECT_EQ(error_of(with(many, {{"TORCHELASTIC_RUN_ID", "a"}})), "none") << name;
  }
  EXPECT_THAT(error_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"WORLD_SIZE", "4"}}),
              HasSubstr("PMI's launcher has started 2 tasks (PMI_SIZE)"));
}

TEST(KnownLaunchers, RefuseARankThatAnotherNumberOfTasksHasGot) {
  const Recorded exported{
      {"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}};
  EXPECT_THAT(error_of(with(kSlurm, exported)),
              HasSubstr("RANK is 2 and WORLD_SIZE is 4, but srun has started this process as task "
                        "2 of 3 (SLURM_PROCID, SLURM_STEP_NUM_TASKS): unset RANK and WORLD_SIZE, "
                        "or set launcher.name=torch if they count"));
  EXPECT_EQ(error_of(with(kSlurm, exported), "torch"), "none") << "which the message offers";
  EXPECT_EQ(error_of(with(with(kSlurm, exported), {{"LOCAL_RANK", "0"}})), "none")
      << "ranks that a task has started";
  EXPECT_EQ(error_of(with(with(kSlurm, exported), {{"SLURM_STEP_NUM_TASKS", "1"}})), "none")
      << "a shell that srun has started";
}

TEST(KnownLaunchers, SeeTheGpuThatSlurmShowsToATask) {
  const Recorded two = with(kSlurm, {{"SLURM_NODEID", "0"}, {"SLURM_LOCALID", "1"}});
  EXPECT_TRUE(
      find_environment(lookup_in(with(two, {{"CUDA_VISIBLE_DEVICES", "1"}})))->sees_own_gpu);
  EXPECT_FALSE(
      find_environment(lookup_in(with(two, {{"CUDA_VISIBLE_DEVICES", "0,1"}})))->sees_own_gpu);
  EXPECT_FALSE(find_environment(lookup_in(two))->sees_own_gpu);
}

TEST(KnownLaunchers, CountRestartsOfARequeuedJob) {
  const BatchJob job = batch_job(lookup_in(with(kSlurmScript, {{"SLURM_RESTART_COUNT", "3"}})));
  EXPECT_EQ(job.name, "slurm 1");
  EXPECT_EQ(job.restarts, 3);
  EXPECT_EQ(batch_job(lookup_in(kOpenMpi)).name, "");
  const Recorded requeued = with(kSlurm, {{"SLURM_RESTART_COUNT", "3"}});
  EXPECT_EQ(find_environment(lookup_in(requeued))->restart_count, 3);
}

// Each attempt has a part of the agent's store for itself, in a job that was requeued too.
TEST(KnownLaunchers, CountRestartsOfAnAgentAloneWhereOneCounts) {
  for (int64_t attempt = 0; attempt < 5; ++attempt) {
    const Recorded under_torchrun =
        with(kSlurm, {{"SLURM_RESTART_COUNT", "3"},
                      {"RANK", "0"},
                      {"WORLD_SIZE", "2"},
                      {"MASTER_PORT", "29500"},
                      {"TORCHELASTIC_RUN_ID", "a"},
                      {"TORCHELASTIC_RESTART_COUNT", std::to_string(attempt)}});
    EXPECT_EQ(find_environment(lookup_in(under_torchrun))->restart_count, attempt);
    EXPECT_EQ(batch_job(lookup_in(under_torchrun)).restarts, 3);
  }
}

}  // namespace
}  // namespace phalanx
