// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/agent_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

AgentSettings two_nodes() {
  return {.ranks = 4,
          .min_nodes = 2,
          .max_nodes = 2,
          .node_rank = 0,
          .line = {"trainer", "launch", "--nnodes=2", "--node-rank=0", "--master-addr=a",
                   "--nproc-per-node=4"}};
}

TEST(AgentLines, AreOneForEachNodeThatHasANumber) {
  EXPECT_THAT(
      lines_of_launch(two_nodes()),
      ElementsAre(LaunchLine{"node 0", {"trainer", "launch", "--nnodes=2", "--master-addr=a",
                                        "--nproc-per-node=4", "--node-rank=0"}},
                  LaunchLine{"node 1", {"trainer", "launch", "--nnodes=2", "--master-addr=a",
                                        "--nproc-per-node=4", "--node-rank=1"}}));
}

TEST(AgentLines, HaveTheRanksOfEachNodeAndOnlyTheOwnAddress) {
  AgentSettings settings = two_nodes();
  settings.line.emplace_back("--local-addr=10.0.0.1");
  const auto lines = lines_of_launch(settings, {4, 2}, 0);
  EXPECT_THAT(lines[0].words,
              ElementsAre("trainer", "launch", "--nnodes=2", "--master-addr=a",
                          "--nproc-per-node=4", "--local-addr=10.0.0.1", "--node-rank=0"));
  EXPECT_THAT(lines[1].words, ElementsAre("trainer", "launch", "--nnodes=2", "--master-addr=a",
                                          "--nproc-per-node=2", "--node-rank=1"));
}

TEST(AgentLines, LeaveAutoToEachNode) {
  AgentSettings settings = two_nodes();
  settings.line.back() = "--nproc-per-node=auto";
  const auto lines = lines_of_launch(settings, {4, 2}, 0);
  EXPECT_THAT(lines[1].words, ElementsAre("trainer", "launch", "--nnodes=2", "--master-addr=a",
                                          "--nproc-per-node=auto", "--node-rank=1"));
}

TEST(AgentLines, AreOneForNodesThatMeetAsTheyCome) {
  AgentSettings settings{.ranks = 2, .min_nodes = 1, .max_nodes = 4};
  settings.line = {"trainer", "launch", "--nnodes=1:4", "--rdzv-backend=c10d"};
  EXPECT_THAT(lines_of_launch(settings, {2, 2}, 1),
              ElementsAre(LaunchLine{"each node", settings.line}));
  settings.line.emplace_back("--rdzv-conf=is_host=1");
  EXPECT_EQ(lines_of_launch(settings, {2, 2}, 1).front().place, "each node, with its own is_host");
  // Nodes of other numbers of ranks are told apart.
  EXPECT_EQ(lines_of_launch(settings, {2, 1}, 0).size(), 2);
}

TEST(AgentLines, AreTheFirstHostsAloneWithAHostfile) {
  AgentSettings settings = two_nodes();
  settings.line = {"trainer", "launch", "--hostfile=hosts"};
  settings.remote_nodes = {{.host = "b", .command = {"ssh", "b"}}};
  EXPECT_THAT(lines_of_launch(settings), ElementsAre(LaunchLine{"", settings.line}));
}

TEST(AgentLines, OfManyNodesAreOne) {
  AgentSettings settings = two_nodes();
  settings.min_nodes = settings.max_nodes = 64;
  const auto lines = lines_of_launch(settings);
  ASSERT_EQ(lines.size(), 1);
  EXPECT_EQ(lines[0].place, "node 0, and on 63 others with their own --node-rank");
}

TEST(AgentLines, AreNoneOfAProgram) {
  AgentSettings settings = two_nodes();
  settings.line.clear();
  EXPECT_THAT(lines_of_launch(settings), IsEmpty());
}

}  // namespace
}  // namespace phalanx
