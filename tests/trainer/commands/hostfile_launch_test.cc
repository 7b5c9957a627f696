// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/launch/hostfile_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Words = std::vector<std::string>;

AgentSettings settings(const std::string& hosts, Words flags, Words program = {}) {
  const TemporaryFolder folder;
  spill(folder / "hosts", hosts);
  flags.emplace_back("--hostfile=hosts");
  const Words arguments = program.empty() ? Words{"my.yaml", "name=it's"} : Words();
  return hostfile_settings(
      {.arguments = arguments, .flags = std::move(flags), .program = std::move(program)},
      (folder / "hosts").string());
}

std::string refusal(const std::string& hosts, Words flags) {
  try {
    settings(hosts, std::move(flags));
  } catch (const UserError& error) {
    return error.what();
  }
  return "taken";
}

TEST(HostfileLaunch, ThisHostIsTheFirstNode) {
  const AgentSettings first = settings("127.0.0.1 slots=4\nb slots=2\nc\n", {"--ssh=env -i ssh"});
  EXPECT_EQ(first.ranks, 4);
  EXPECT_EQ(std::pair(first.min_nodes, first.max_nodes), std::pair(int64_t{3}, int64_t{3}));
  EXPECT_EQ(first.node_rank, 0);
  EXPECT_EQ(std::pair(first.host, first.port),
            std::pair(std::string("127.0.0.1"), uint16_t{29500}));
  ASSERT_EQ(first.remote_nodes.size(), 2);
  EXPECT_EQ(first.remote_nodes[1].host, "c");
  EXPECT_THAT(first.remote_nodes[1].command,
              ElementsAre("env", "-i", "ssh", "c", testing::A<std::string>()));
}

TEST(HostfileLaunch, TheOthersGetTheSameArgumentsAndTheirPlaces) {
  ::setenv("NCCL_DEBUG", "a 'b'", 1);
  ::setenv("PET_HOSTFILE", "none", 1);
  ::setenv("MINE", "$HOME", 1);
  const AgentSettings first =
      settings("127.0.0.1\nb slots=2\n", {"--ssh=env ssh", "--max-restarts=3", "--export=MINE"});
  const std::string& script = first.remote_nodes.at(0).command.back();
  EXPECT_THAT(script, StartsWith("cd "));
  EXPECT_THAT(script, HasSubstr(" && exec env "));
  EXPECT_THAT(script, HasSubstr("'NCCL_DEBUG=a '\\''b'\\'''"));
  EXPECT_THAT(script, HasSubstr("'MINE=$HOME'"));
  EXPECT_THAT(script, Not(HasSubstr("HOSTFILE")));
  EXPECT_THAT(script, Not(HasSubstr(" PATH=")));
  EXPECT_THAT(script,
              EndsWith(" launch --max-restarts=3 --nproc-per-node=2 --nnodes=2 --node-rank=1 "
                       "--master-addr=127.0.0.1 --master-port=29500 --remote-node my.yaml "
                       "'name=it'\\''s'"));
  const AgentSettings program =
      settings("127.0.0.1\nb\n", {"--ssh=env", "--master-addr=10.0.0.1", "--master-port=1"},
               {"echo", "$(x)"});
  EXPECT_EQ(std::pair(program.host, program.port), std::pair(std::string("10.0.0.1"), uint16_t{1}));
  EXPECT_THAT(program.remote_nodes.at(0).command.back(), EndsWith(" --remote-node -- echo '$(x)'"));
}

TEST(HostfileLaunch, OneHostIsOneNode) {
  const AgentSettings alone = settings("127.0.0.1 slots=2\n", {});
  EXPECT_EQ(std::pair(alone.ranks, alone.max_nodes), std::pair(int64_t{2}, int64_t{1}));
  EXPECT_EQ(alone.port, 0);
  EXPECT_TRUE(alone.remote_nodes.empty());
}

TEST(HostfileLaunch, WhatContradictsTheFileIsRefused) {
  const std::string two = "127.0.0.1 slots=2\nb\n";
  EXPECT_THAT(refusal(two, {"--nnodes=2"}), StartsWith("--nnodes stands beside --hostfile"));
  EXPECT_THAT(refusal(two, {"--standalone"}), StartsWith("--standalone stands beside"));
  EXPECT_THAT(refusal(two, {"--rdzv-backend=c10d"}), StartsWith("--rdzv-backend stands beside"));
  EXPECT_THAT(refusal(two, {"--nproc-per-node=1"}),
              HasSubstr("the hostfile gives '127.0.0.1' slots=2"));
  EXPECT_EQ(refusal(two, {"--nproc-per-node=2", "--ssh=env"}), "taken");
  EXPECT_THAT(refusal("192.0.2.1\n127.0.0.1\n", {}), HasSubstr("'192.0.2.1', is not this one"));
  EXPECT_THAT(refusal(two, {"--ssh=no-such-ssh -v"}), HasSubstr("no program 'no-such-ssh'"));
  EXPECT_THAT(refusal(two, {"--export=NO_SUCH", "--ssh=env"}),
              HasSubstr("there is no variable 'NO_SUCH'"));
  EXPECT_THAT(refusal(two, {"--master-port=0"}), HasSubstr("port 0"));
}

}  // namespace
}  // namespace phalanx
