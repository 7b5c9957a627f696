// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/environment_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "tests/trainer/commands/command_fixture.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"

namespace phalanx::tiny {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

class Surroundings : public CommandTest {};

TEST_F(Surroundings, OfTheEnvironmentWhatCanMatterIsTaken) {
  const std::vector<std::string> environment = {
      "CUDA_VISIBLE_DEVICES=0,1", "OMP_NUM_THREADS=4",  "NCCL_DEBUG=INFO=x", "HOME=/home/someone",
      "TORCHELASTIC_RUN_ID=7",    "SLURM_JOB_ID=12",    "MASTER_PORT=",      "PATH=/bin",
      "SLURM_SUBMIT_DIR=/home/x", "MY_DATA=/data/text", "RANKS=3",           "no variable",
      "GOMP_SPINCOUNT=9"};
  EXPECT_THAT(relevant_environment(environment, {"MY_DATA", "NOT_SET"}),
              ElementsAre(Pair("CUDA_VISIBLE_DEVICES", "0,1"), Pair("GOMP_SPINCOUNT", "9"),
                          Pair("MASTER_PORT", ""), Pair("MY_DATA", "/data/text"),
                          Pair("NCCL_DEBUG", "INFO=x"), Pair("OMP_NUM_THREADS", "4"),
                          Pair("SLURM_JOB_ID", "12"), Pair("TORCHELASTIC_RUN_ID", "7")));
}

TEST_F(Surroundings, NothingPrivateIsTaken) {
  const std::vector<std::string> environment = {
      "TORCH_HUB_TOKEN=x",   "SLURM_JWT=x",
      "NCCL_SECRET=x",       "GLOO_DEVICE_TRANSPORT_TCP_TLS_PKEY=x",
      "SLURM_JOB_USER=x",    "my_password=x",
      "AWS_ACCESS_KEY_ID=x", "CUDA_USER_NAME=x"};
  EXPECT_THAT(
      relevant_environment(environment, {"my_password", "AWS_ACCESS_KEY_ID", "SLURM_JOB_USER"}),
      IsEmpty());
  EXPECT_FALSE(is_private("TORCHELASTIC_USE_AGENT_STORE"));
  EXPECT_FALSE(is_private("TORCHELASTIC_RUN_ID"));
}

TEST_F(Surroundings, TheProcesssOwnEnvironmentIsSeenAsItIsNow) {
  setenv("PHALANX_TEST_VARIABLE", "a b", 1);
  EXPECT_THAT(whole_environment(), Contains("PHALANX_TEST_VARIABLE=a b"));
  unsetenv("PHALANX_TEST_VARIABLE");
  EXPECT_THAT(whole_environment(), Not(Contains("PHALANX_TEST_VARIABLE=a b")));
}

TEST_F(Surroundings, VariablesThatAConfigTakesAreFound) {
  config::Diagnostics diagnostics;
  const config::Node tree = config::parse_yaml(
      "a: ${oc.env:ONE}\nb: [x, '${oc.env: TWO , default}/${oc.env:THREE}', {c: '${a}'}]\n",
      "test.yaml", diagnostics);
  ASSERT_TRUE(diagnostics.empty());
  EXPECT_THAT(variables_taken(tree), ElementsAre("ONE", "THREE", "TWO"));
}

TEST_F(Surroundings, TheSystemTellsOfTheProcessAndItsHost) {
  using namespace std::string_literals;
  write("proc/self/cmdline", "bin/trainer\0train\0a b.yaml\0empty=\0\0"s);
  write("proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU @ 3 GHz\nmodel name\t: other\n");
  EXPECT_THAT(command_line("."), ElementsAre("bin/trainer", "train", "a b.yaml", "empty=", ""));
  EXPECT_EQ(cpu_model("."), "A CPU @ 3 GHz");
  write("proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 50\n");
  EXPECT_EQ(cpu_model("."), "") << "as on ARM";
  EXPECT_FALSE(command_line().empty());
}

}  // namespace
}  // namespace phalanx::tiny
