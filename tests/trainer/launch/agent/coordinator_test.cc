// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "tests/trainer/launch/agent/nodes_of_run.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Coordinator, StartsWhenAllNodesAreThere) {
  Nodes nodes_of_run(nodes(2, 2));
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::gather);
  EXPECT_EQ(nodes_of_run.order().lacking, 1);
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::run);
  EXPECT_EQ(nodes_of_run.order().round, 1);
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, 1));
}

TEST(Coordinator, NodeRanksGiveTheOrder) {
  Nodes nodes_of_run(nodes(3, 3));
  for (const int64_t rank : {2, 0, 1}) nodes_of_run.come(rank);
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(1, 2, 0));
}

TEST(Coordinator, WaitsForMoreNodesUntilTheLastCall) {
  Nodes nodes_of_run(nodes(1, 3));
  nodes_of_run.come();
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.wait(seconds(29)).kind, OrderKind::gather);
  EXPECT_EQ(nodes_of_run.wait(seconds(2)).kind, OrderKind::run);
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, 1));
}

TEST(Coordinator, EndsWhenTooFewNodesCome) {
  Nodes nodes_of_run(nodes(2, 2));
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.wait(seconds(599)).kind, OrderKind::gather);
  const Order& order = nodes_of_run.wait(seconds(2));
  EXPECT_EQ(order.kind, OrderKind::end);
  EXPECT_EQ(order.outcome.exit_code, 2);
  EXPECT_THAT(order.outcome.message, HasSubstr("1 of 2 nodes have come"));
}

TEST(Coordinator, RefusesNodesThatCanNeverTakePart) {
  Nodes nodes_of_run(nodes(2, 2));
  nodes_of_run.come(0);
  nodes_of_run.come(0);
  nodes_of_run.come(-1);
  nodes_of_run.come(1, "2");
  nodes_of_run.come(2);
  const Order& order = nodes_of_run.wait(seconds(1));
  EXPECT_EQ(order.kind, OrderKind::gather);
  EXPECT_THAT(order.refused.at(1), HasSubstr("--node-rank 0 is taken by host-0"));
  EXPECT_THAT(order.refused.at(2), HasSubstr("give --node-rank to all nodes or to none"));
  EXPECT_THAT(order.refused.at(3), HasSubstr("this is version 2"));
  EXPECT_THAT(order.refused.at(4), HasSubstr("--node-rank is 2, but --nnodes is 2"));
}

TEST(Coordinator, EndsWithSuccessOfAllNodes) {
  Nodes nodes_of_run(nodes(2, 2));
  nodes_of_run.come();
  nodes_of_run.come();
  nodes_of_run.start();
  nodes_of_run.set(0, AgentState::finished);
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::run);
  nodes_of_run.set(1, AgentState::finished);
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::end);
  EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 0);
}

TEST(Coordinator, EndsWithTheFailureThatWasFirst) {
  Nodes nodes_of_run(nodes(3, 3));
  for (int i = 0; i < 3; ++i) nodes_of_run.come();
  nodes_of_run.start();
  nodes_of_run.fail(0, "met the end of another", 100, /*by_peer=*/true);
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::halt);
  nodes_of_run.fail(1, "later", 300);
  nodes_of_run.fail(2, "the cause", 200, false, 7);
  const Order& order = nodes_of_run.order();
  EXPECT_EQ(order.kind, OrderKind::end);
  EXPECT_EQ(order.outcome.message, "the cause");
  EXPECT_EQ(order.outcome.exit_code, 7);
}

TEST(Coordinator, StartsAgainWithABackOffAsOftenAsItMay) {
  Nodes nodes_of_run(nodes(2, 2, /*restarts=*/3));
  nodes_of_run.come();
  nodes_of_run.come();
  for (const int delay : {1, 2, 4}) {
    nodes_of_run.start();
    nodes_of_run.fail(1, "boo", 1);
    nodes_of_run.order();
    nodes_of_run.obey();
    EXPECT_EQ(nodes_of_run.order().kind, OrderKind::gather);
    EXPECT_EQ(nodes_of_run.order().delay, delay);
    nodes_of_run.obey();
    EXPECT_EQ(nodes_of_run.wait(seconds(delay) - milliseconds(500)).kind, OrderKind::gather);
    EXPECT_EQ(nodes_of_run.wait(milliseconds(500)).kind, OrderKind::run);
  }
  EXPECT_EQ(nodes_of_run.order().round, 4);
  nodes_of_run.start();
  nodes_of_run.fail(1, "boo", 1);
  nodes_of_run.order();
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::end);
}

TEST(Coordinator, AMistakeOfTheUserIsNotTriedAgain) {
  Nodes nodes_of_run(nodes(1, 1, 3));
  nodes_of_run.come();
  nodes_of_run.start();
  nodes_of_run.fail(0, "no such file", 1, false, 2);
  nodes_of_run.order();
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::end);
  EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 2);
}

TEST(Coordinator, ASignalEndsTheRunOnAllNodes) {
  Nodes nodes_of_run(nodes(2, 2, 3));
  nodes_of_run.come();
  nodes_of_run.come();
  nodes_of_run.start();
  nodes_of_run.stop(1, 15);
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::halt);
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::end);
  EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 143);
}

TEST(Coordinator, ALostNodeIsReplacedByOneThatComes) {
  Nodes nodes_of_run(nodes(2, 2, 1));
  nodes_of_run.come(0);
  nodes_of_run.come(1);
  nodes_of_run.start();
  nodes_of_run.be_silent(1);
  EXPECT_EQ(nodes_of_run.wait(seconds(14)).kind, OrderKind::run);
  EXPECT_EQ(nodes_of_run.wait(seconds(2)).kind, OrderKind::halt);
  EXPECT_THAT(nodes_of_run.order().outcome.message, HasSubstr("node 1 (host-1) gave no sign"));
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::gather);
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.wait(seconds(10)).kind, OrderKind::gather);
  nodes_of_run.come(1);
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::run);
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, 2));
}

// As where the process that meets the other nodes dies: that launch ends its ranks by SIGTERM,
// which those of all nodes obey.
TEST(Coordinator, ALostNodeIsTheCauseOfAStopThatNobodyWasToldOf) {
  for (const int64_t restarts : {0, 1}) {
    Nodes nodes_of_run(nodes(2, 2, restarts));
    nodes_of_run.come(0);
    nodes_of_run.come(1);
    nodes_of_run.start();
    nodes_of_run.be_silent(1);
    nodes_of_run.stop(0, 15, /*is_told=*/false);
    EXPECT_EQ(nodes_of_run.wait(seconds(14)).kind, OrderKind::halt);
    const Order& order = nodes_of_run.wait(seconds(2));
    EXPECT_EQ(order.kind, restarts == 0 ? OrderKind::end : OrderKind::gather);
    EXPECT_EQ(order.outcome.exit_code, 1);
    EXPECT_THAT(order.outcome.message, HasSubstr("node 1 (host-1) gave no sign of life for 15 s"));
  }
}

TEST(Coordinator, ASignalToANodeIsTheCauseThoughAnotherOneIsLostThen) {
  Nodes nodes_of_run(nodes(2, 2));
  nodes_of_run.come(0);
  nodes_of_run.come(1);
  nodes_of_run.start();
  nodes_of_run.stop(0, 15);
  nodes_of_run.order();
  nodes_of_run.be_silent(1);
  const Order& order = nodes_of_run.wait(seconds(16));
  EXPECT_EQ(order.kind, OrderKind::end);
  EXPECT_EQ(order.outcome, (RankOutcome{.exit_code = 143, .message = {}}));
}

TEST(Coordinator, ALaunchThatIsKilledIsALostNode) {
  Nodes nodes_of_run(nodes(2, 2));
  nodes_of_run.come(0);
  nodes_of_run.come(1);
  nodes_of_run.start();
  nodes_of_run.fail(0, "rank 2: gave no sign of life", 1, /*by_peer=*/true);
  nodes_of_run.set(1, AgentState::left);
  nodes_of_run.order();
  const Order& order = nodes_of_run.order();
  EXPECT_EQ(order.kind, OrderKind::end);
  EXPECT_THAT(order.outcome.message,
              HasSubstr("node 1 (host-1) is lost: its launch process ended and gave no reason"));
}

TEST(Coordinator, AReplacementMayComeBeforeTheLossIsNoticed) {
  Nodes nodes_of_run(nodes(2, 2, 1));
  nodes_of_run.come(0);
  nodes_of_run.come(1);
  nodes_of_run.start();
  nodes_of_run.be_silent(1);
  nodes_of_run.wait(seconds(2));
  nodes_of_run.come(1);
  nodes_of_run.wait(seconds(14));
  nodes_of_run.obey();
  nodes_of_run.order();
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.wait(seconds(1)).kind, OrderKind::run);
  EXPECT_TRUE(nodes_of_run.order().refused.empty());
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, 2));
}

TEST(Coordinator, ANodeThatComesBackDoesNotDriveItsReplacementAway) {
  Nodes nodes_of_run(nodes(2, 2, 1));
  nodes_of_run.come(0);
  nodes_of_run.come(1);
  nodes_of_run.start();
  nodes_of_run.be_silent(1);
  nodes_of_run.wait(seconds(16));
  nodes_of_run.obey();
  nodes_of_run.order();
  nodes_of_run.obey();
  const int64_t replacement = nodes_of_run.come(1);
  nodes_of_run.wait(seconds(2));
  nodes_of_run.start();
  nodes_of_run.be_heard(1);
  nodes_of_run.set(1, AgentState::waiting);
  EXPECT_EQ(nodes_of_run.wait(seconds(2)).kind, OrderKind::run);
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, replacement));
  EXPECT_FALSE(nodes_of_run.order().refused.contains(replacement));
  EXPECT_THAT(nodes_of_run.order().refused.at(1), HasSubstr("--node-rank 1 is taken by host-2"));
}

TEST(Coordinator, ASignalBetweenTwoRoundsEndsTheRun) {
  Nodes nodes_of_run(nodes(2, 2, 3));
  nodes_of_run.come();
  nodes_of_run.come();
  nodes_of_run.start();
  nodes_of_run.fail(1, "boo", 1);
  nodes_of_run.order();
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::gather);
  nodes_of_run.stop(1, 15);
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::end);
  EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 143);
}

// Its agent was told to run, and then to stop.
TEST(Coordinator, ASignalBeforeRanksHaveStartedEndsTheRun) {
  Nodes nodes_of_run(nodes(2, 2));
  nodes_of_run.come();
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::run);
  nodes_of_run.set(0, AgentState::running);
  nodes_of_run.stop(1, 15);
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::halt);
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::end);
}

TEST(Coordinator, IsAloneWithoutThoseWhoAreLostOrRefused) {
  Nodes nodes_of_run(nodes(2, 2));
  nodes_of_run.come(0);
  nodes_of_run.come(1);
  nodes_of_run.wait(seconds(1));
  const int64_t refused = nodes_of_run.come(0);
  nodes_of_run.wait(seconds(1));
  EXPECT_TRUE(nodes_of_run.order().refused.contains(refused));
  EXPECT_FALSE(nodes_of_run.is_alone());
  nodes_of_run.be_silent(1);
  nodes_of_run.wait(seconds(16));
  EXPECT_TRUE(nodes_of_run.is_alone());
}

TEST(Coordinator, GivingUpNamesTheNodeThatWasLost) {
  Nodes nodes_of_run(nodes(2, 2, 1));
  nodes_of_run.come(0);
  nodes_of_run.come(1);
  nodes_of_run.start();
  nodes_of_run.be_silent(1);
  nodes_of_run.wait(seconds(16));
  nodes_of_run.obey();
  nodes_of_run.order();
  nodes_of_run.obey();
  const Order& order = nodes_of_run.wait(seconds(610));
  EXPECT_EQ(order.kind, OrderKind::end);
  EXPECT_EQ(order.outcome.exit_code, 1);
  EXPECT_THAT(order.outcome.message,
              AllOf(HasSubstr("node 1 (host-1) gave no sign of life for 15 s; "),
                    HasSubstr("; after 600 s (join_timeout of --rdzv-conf) 1 of 2")));
}

// Whatever nodes do, the run comes to its end, and no round has too few or too many nodes.
TEST(Coordinator, EndsAfterAnyHistory) {
  std::mt19937 random(11);
  for (int history = 0; history < 300; ++history) {
    const auto most = static_cast<int64_t>(1 + random() % 4);
    const auto fewest = static_cast<int64_t>(1 + random() % most);
    Nodes nodes_of_run(nodes(fewest, most, 2));
    int64_t count = 0;
    for (int64_t i = 0; i < most; ++i) count = nodes_of_run.come() + 1;
    int step = 0;
    for (; step < 3000 && nodes_of_run.order().kind != OrderKind::end; ++step) {
      const auto agent = static_cast<int64_t>(random() % count);
      const auto members = nodes_of_run.members();
      if (nodes_of_run.order().kind == OrderKind::run) {
        ASSERT_GE(std::ssize(members), fewest);
        ASSERT_LE(std::ssize(members), most);
        nodes_of_run.start();
        const bool takes_part = std::ranges::find(members, agent) != members.end();
        if (random() % 3 == 0 && takes_part) nodes_of_run.fail(agent, "boo", step);
      }
      if (random() % 40 == 0 && agent != 0) nodes_of_run.be_silent(agent);
      if (random() % 60 == 0) count = nodes_of_run.come() + 1;
      nodes_of_run.obey();
      nodes_of_run.wait(milliseconds(500 * (1 + random() % 8)));
    }
    EXPECT_EQ(nodes_of_run.order().kind, OrderKind::end) << "history " << history;
  }
}

}  // namespace
}  // namespace phalanx
