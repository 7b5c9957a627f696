// SPDX-License-Identifier: Apache-2.0
// Nodes that come to a run and leave it, as the coordinator sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/trainer/launch/agent/nodes_of_run.h"
#include "trainer/launch/agent/coordinator.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ChangingNodes, MakesRoomForNodesThatComeLater) {
  Nodes nodes_of_run(nodes(1, 2));
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::halt);
  EXPECT_TRUE(nodes_of_run.order().outcome.message.empty());
  nodes_of_run.obey();
  nodes_of_run.order();
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::run);
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, 1));
}

TEST(ChangingNodes, AStrangerHaltsNoRun) {
  Nodes nodes_of_run(nodes(1, 2));
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  const int64_t stranger = nodes_of_run.come(-1, "2");
  EXPECT_EQ(nodes_of_run.wait(seconds(1)).kind, OrderKind::run);
  EXPECT_THAT(nodes_of_run.order().refused.at(stranger), HasSubstr("this is version 2"));
}

TEST(ChangingNodes, RanksThatMadeRoomHaveEndedAsAskedAndAreNoRestart) {
  Nodes nodes_of_run(nodes(1, 2, /*restarts=*/1));
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  nodes_of_run.fail(0, "boo", 1);
  nodes_of_run.order();
  EXPECT_EQ(nodes_of_run.order().delay, 1);
  nodes_of_run.obey();
  nodes_of_run.start_after_last_call();
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::halt);
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::gather);
  EXPECT_EQ(nodes_of_run.order().delay, 0);
  EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 143);
  EXPECT_TRUE(nodes_of_run.order().outcome.message.empty());
}

// ---- Nodes that come to a run, and leave it

std::string no_more_than_one_node(const JoinAsk& ask) {
  return ask.ranks_of_nodes.size() > 1 ? "does not fit" : "";
}

TEST(ChangingNodes, ANodeThatTheRunCannotGoOnWithIsRefusedAndTheRunGoesOn) {
  Nodes nodes_of_run(nodes(1, 2));
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  nodes_of_run.status(0).samples_a_step = 8;
  const int64_t newcomer = nodes_of_run.come(-1, "1", 3);
  JoinAsk asked;
  nodes_of_run.answer(newcomer, [&](const JoinAsk& ask) {
    asked = ask;
    return no_more_than_one_node(ask);
  });
  const Order& order = nodes_of_run.wait(seconds(2));
  EXPECT_EQ(order.kind, OrderKind::run);
  EXPECT_EQ(order.round, 1);
  EXPECT_EQ(order.refused.at(newcomer), "does not fit");
  EXPECT_THAT(asked.ranks_of_nodes, ElementsAre(2, 3));
  EXPECT_EQ(asked.samples_a_step, 8);
  EXPECT_THAT(order.news, ElementsAre("node host-1 is refused: does not fit"));
}

TEST(ChangingNodes, NodesThatComeTogetherAreAskedOneBesideTheOther) {
  Nodes nodes_of_run(nodes(1, 3));
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  nodes_of_run.come();
  const int64_t third = nodes_of_run.come();
  nodes_of_run.answer(third, [](const JoinAsk& ask) {
    return ask.ranks_of_nodes.size() > 2 ? "three are too many" : "";
  });
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::halt);
  EXPECT_EQ(nodes_of_run.order().refused.at(third), "three are too many");
  EXPECT_EQ(nodes_of_run.order().reason, "node host-1 joins");
  nodes_of_run.obey();
  nodes_of_run.order();
  nodes_of_run.obey();
  nodes_of_run.wait(seconds(31));
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, 1));
}

TEST(ChangingNodes, ARoundThatHasJustBegunIsNotStoppedForANode) {
  Nodes nodes_of_run(nodes(1, 2));
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  nodes_of_run.status(0).has_stepped = false;
  const int64_t newcomer = nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.wait(seconds(60)).kind, OrderKind::run);
  EXPECT_FALSE(nodes_of_run.order().asked.contains(newcomer));
  nodes_of_run.status(0).has_stepped = true;
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::halt);
}

TEST(ChangingNodes, ANodeThatHangsWhileItJoinsGivesItsPlaceToOthers) {
  AgentSettings settings = nodes(1, 2);
  settings.join_timeout = seconds(20);
  settings.last_call_timeout = seconds(100);
  Nodes nodes_of_run(settings);
  nodes_of_run.come(0);
  const int64_t hangs = nodes_of_run.come(1);
  nodes_of_run.hang(hangs);
  nodes_of_run.wait(seconds(17));
  EXPECT_TRUE(nodes_of_run.order().refused.empty());
  nodes_of_run.wait(seconds(5));
  EXPECT_THAT(nodes_of_run.order().refused.at(hangs), HasSubstr("join_timeout"));
  const int64_t late = nodes_of_run.come(1);
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::run);
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, late));
}

TEST(ChangingNodes, AJoiningNodeThatHangsHaltsNoRunAndIsRefusedInTheEnd) {
  AgentSettings settings = nodes(1, 2);
  settings.join_timeout = seconds(60);
  Nodes nodes_of_run(settings);
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  const int64_t hangs = nodes_of_run.come();
  nodes_of_run.hang(hangs);
  EXPECT_EQ(nodes_of_run.wait(seconds(59)).kind, OrderKind::run);
  EXPECT_TRUE(nodes_of_run.order().refused.empty());
  nodes_of_run.wait(seconds(2));
  EXPECT_THAT(nodes_of_run.order().refused.at(hangs), HasSubstr("join_timeout"));
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.wait(seconds(1)).kind, OrderKind::halt);
}

TEST(ChangingNodes, ContradictingNumbersOfNodesAreTold) {
  Nodes nodes_of_run(nodes(1, 2));
  nodes_of_run.come();
  const int64_t other = nodes_of_run.come();
  nodes_of_run.status(other).min_nodes = 2;
  nodes_of_run.status(other).max_nodes = 3;
  const Order& order = nodes_of_run.wait(seconds(1));
  EXPECT_EQ(order.refused.at(other),
            "--nnodes is 2:3 on host-1 and 1:2 on host-0: give all nodes the same");
  EXPECT_EQ(order.news_count, 1);
}

TEST(ChangingNodes, TheFirstNodeThatDoesNotFitEndsTheLaunchOnAllNodes) {
  Nodes nodes_of_run(nodes(2, 2));
  const int64_t first = nodes_of_run.come();
  nodes_of_run.answer(first, [](const JoinAsk&) { return "another run trains there"; });
  nodes_of_run.come();
  nodes_of_run.wait(seconds(1));
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::end);
  EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 2);
  EXPECT_EQ(nodes_of_run.order().outcome.message, "another run trains there");
}

TEST(ChangingNodes, ANodeThatLeavesEndsAloneAndTheOthersGoOn) {
  Nodes nodes_of_run(nodes(1, 2));  // without a restart: it is no failure
  nodes_of_run.come();
  nodes_of_run.come();
  nodes_of_run.wait(milliseconds(500));
  nodes_of_run.start();
  nodes_of_run.stop(0, 15, /*is_told=*/false);  // its ranks stop with the others'
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::halt);
  nodes_of_run.stop(1, 15);
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::gather);
  EXPECT_EQ(nodes_of_run.order().outcome.reason, "node host-1 leaves");
  EXPECT_THAT(
      nodes_of_run.order().news,
      ElementsAre("node host-1 leaves: the ranks start again on 1 node, in 30 s if no other "
                  "node comes (last_call_timeout of --rdzv-conf)"));
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0));
  nodes_of_run.set(0, AgentState::waiting);
  nodes_of_run.set(1, AgentState::left);
  EXPECT_EQ(nodes_of_run.wait(seconds(31)).kind, OrderKind::run);
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0));
}

// Its ranks have saved with the others', and it dies before it has said so.
TEST(ChangingNodes, ANodeThatIsKilledBetweenItsSaveAndItsGoodbyeHasLeft) {
  for (const bool is_noticed_first : {false, true}) {
    Nodes nodes_of_run(nodes(1, 2));  // without a restart: it is no failure
    nodes_of_run.come();
    nodes_of_run.come();
    nodes_of_run.wait(milliseconds(500));
    nodes_of_run.start();
    if (is_noticed_first) {
      nodes_of_run.set(1, AgentState::left);
      EXPECT_EQ(nodes_of_run.order().kind, OrderKind::halt);
    } else {
      nodes_of_run.be_silent(1);
    }
    nodes_of_run.stop(0, 15, /*is_told=*/false);
    nodes_of_run.wait(seconds(16));
    EXPECT_EQ(nodes_of_run.order().kind, OrderKind::gather) << is_noticed_first;
    EXPECT_EQ(nodes_of_run.order().outcome.reason, "node host-1 leaves");
    EXPECT_EQ(nodes_of_run.order().delay, 0);
    nodes_of_run.set(0, AgentState::waiting);
    EXPECT_EQ(nodes_of_run.wait(seconds(31)).kind, OrderKind::run);
    EXPECT_THAT(nodes_of_run.members(), ElementsAre(0));
  }
}

TEST(ChangingNodes, ANodeThatIsKilledWhileItMakesRoomEndsNoLaunch) {
  Nodes nodes_of_run(nodes(1, 3));
  nodes_of_run.come();
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::halt);
  nodes_of_run.be_silent(1);
  nodes_of_run.obey();
  nodes_of_run.wait(seconds(16));
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::gather);
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.wait(seconds(31)).kind, OrderKind::run);
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, 2));
}

// Nothing says that they have saved.
TEST(ChangingNodes, RanksThatFailWithALostNodeAreAFailure) {
  for (const bool meet_its_end : {false, true}) {
    Nodes nodes_of_run(nodes(1, 2));
    nodes_of_run.come();
    nodes_of_run.come();
    nodes_of_run.wait(milliseconds(500));
    nodes_of_run.start();
    nodes_of_run.set(1, AgentState::left);
    nodes_of_run.order();
    if (meet_its_end) {
      nodes_of_run.fail(0, "rank 1 is gone", 5, /*by_peer=*/true);
    } else {
      nodes_of_run.obey();
    }
    EXPECT_EQ(nodes_of_run.order().kind, OrderKind::end);
    EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 1);
  }
}

TEST(ChangingNodes, TooFewNodesDoNotGoOnWithoutOneThatLeaves) {
  Nodes nodes_of_run(nodes(2, 3));
  nodes_of_run.come();
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  nodes_of_run.stop(1, 15);
  nodes_of_run.order();
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::end);
  EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 143);
}

TEST(ChangingNodes, ASignalToTheNodeThatServesTheOthersEndsTheRun) {
  Nodes nodes_of_run(nodes(1, 2));
  nodes_of_run.come();
  nodes_of_run.come();
  nodes_of_run.wait(milliseconds(500));
  nodes_of_run.start();
  nodes_of_run.stop(0, 15);
  nodes_of_run.order();
  nodes_of_run.stop(1, 15, /*is_told=*/false);
  EXPECT_EQ(nodes_of_run.order().kind, OrderKind::end);
}

}  // namespace
}  // namespace phalanx
