// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

namespace phalanx {
namespace {

using State = AgentStatus::State;
using Kind = Order::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

/// Agents that do as they are told, or as a test tells them; time passes when a test says so.
class Nodes {
 public:
  explicit Nodes(AgentSettings settings) : settings_(settings), coordinator_(settings, 0, now_) {}

  /// A node comes; returns its number.
  int64_t come(int64_t node_rank = -1, const std::string& version = "1", int64_t ranks = 2) {
    const auto agent = static_cast<int64_t>(agents_.size());
    agents_[agent] = {.node = "host-" + std::to_string(agent),
                      .version = version,
                      .ranks = ranks,
                      .node_rank = node_rank};
    return agent;
  }

  const Order& order() { return coordinator_.decide(agents_, now_); }
  bool is_alone() const { return coordinator_.is_alone(agents_, now_); }

  /// Time passes, in which all but those who are silent are heard.
  const Order& wait(milliseconds time) {
    for (milliseconds left = time; left.count() > 0; left -= milliseconds(500)) {
      now_ += std::min(left, milliseconds(500));
      for (auto& [agent, status] : agents_) status.beat += silent_.contains(agent) ? 0 : 1;
      order();
    }
    return order();
  }

  void be_silent(int64_t agent) { silent_.insert(agent); }
  void be_heard(int64_t agent) { silent_.erase(agent); }
  void set(int64_t agent, State state) {
    agents_[agent].state = state;
    if (state == State::running) agents_[agent].round = order().round;
  }
  void fail(int64_t agent, const std::string& message, int64_t time, bool by_peer = false,
            int exit_code = 1) {
    agents_[agent].end = {
        .outcome = {.exit_code = exit_code, .message = message, .caused_by_peer = by_peer},
        .time = time,
        .may_restart = exit_code != 2};
    set(agent, State::failed);
  }
  void stop(int64_t agent, int signal) {
    agents_[agent].end = {.outcome = {.exit_code = 128 + signal, .message = {}}};
    set(agent, State::stopped);
  }

  /// The members of a round start their ranks.
  void start() {
    for (const Member& member : std::vector(order().members)) set(member.agent, State::running);
  }

  /// The same, of nodes that are fewer than there may be.
  void start_after_last_call() {
    wait(seconds(31));
    start();
  }

  /// Every agent does what an agent does: halts, comes back.
  void obey() {
    for (auto& [agent, status] : agents_) {
      if (silent_.contains(agent)) continue;
      const bool runs = status.state == State::running;
      if (order().kind == Kind::halt && runs) status.state = State::halted;
      if (order().kind == Kind::gather && !runs) status.state = State::waiting;
    }
  }

  std::vector<int64_t> members() {
    std::vector<int64_t> numbers;
    for (const Member& member : order().members) numbers.push_back(member.agent);
    return numbers;
  }

 private:
  AgentSettings settings_;
  Coordinator::Clock::time_point now_{};
  Coordinator coordinator_;
  Coordinator::Agents agents_;
  std::set<int64_t> silent_;
};

AgentSettings nodes(int64_t fewest, int64_t most, int64_t restarts = 0) {
  return {.min_nodes = fewest, .max_nodes = most, .max_restarts = restarts};
}

TEST(Coordinator, StartsWhenAllNodesAreThere) {
  Nodes nodes_of_run(nodes(2, 2));
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.order().kind, Kind::gather);
  EXPECT_EQ(nodes_of_run.order().lacking, 1);
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.order().kind, Kind::run);
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
  EXPECT_EQ(nodes_of_run.wait(seconds(29)).kind, Kind::gather);
  EXPECT_EQ(nodes_of_run.wait(seconds(2)).kind, Kind::run);
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, 1));
}

TEST(Coordinator, EndsWhenTooFewNodesCome) {
  Nodes nodes_of_run(nodes(2, 2));
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.wait(seconds(599)).kind, Kind::gather);
  const Order& order = nodes_of_run.wait(seconds(2));
  EXPECT_EQ(order.kind, Kind::end);
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
  EXPECT_EQ(order.kind, Kind::gather);
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
  nodes_of_run.set(0, State::finished);
  EXPECT_EQ(nodes_of_run.order().kind, Kind::run);
  nodes_of_run.set(1, State::finished);
  EXPECT_EQ(nodes_of_run.order().kind, Kind::end);
  EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 0);
}

TEST(Coordinator, EndsWithTheFailureThatWasFirst) {
  Nodes nodes_of_run(nodes(3, 3));
  for (int i = 0; i < 3; ++i) nodes_of_run.come();
  nodes_of_run.start();
  nodes_of_run.fail(0, "met the end of another", 100, /*by_peer=*/true);
  EXPECT_EQ(nodes_of_run.order().kind, Kind::halt);
  nodes_of_run.fail(1, "later", 300);
  nodes_of_run.fail(2, "the cause", 200, false, 7);
  const Order& order = nodes_of_run.order();
  EXPECT_EQ(order.kind, Kind::end);
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
    EXPECT_EQ(nodes_of_run.order().kind, Kind::gather);
    EXPECT_EQ(nodes_of_run.order().delay, delay);
    nodes_of_run.obey();
    EXPECT_EQ(nodes_of_run.wait(seconds(delay) - milliseconds(500)).kind, Kind::gather);
    EXPECT_EQ(nodes_of_run.wait(milliseconds(500)).kind, Kind::run);
  }
  EXPECT_EQ(nodes_of_run.order().round, 4);
  nodes_of_run.start();
  nodes_of_run.fail(1, "boo", 1);
  nodes_of_run.order();
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.order().kind, Kind::end);
}

TEST(Coordinator, AMistakeOfTheUserIsNotTriedAgain) {
  Nodes nodes_of_run(nodes(1, 1, 3));
  nodes_of_run.come();
  nodes_of_run.start();
  nodes_of_run.fail(0, "no such file", 1, false, 2);
  nodes_of_run.order();
  EXPECT_EQ(nodes_of_run.order().kind, Kind::end);
  EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 2);
}

TEST(Coordinator, ASignalEndsTheRunOnAllNodes) {
  Nodes nodes_of_run(nodes(2, 2, 3));
  nodes_of_run.come();
  nodes_of_run.come();
  nodes_of_run.start();
  nodes_of_run.stop(1, 15);
  EXPECT_EQ(nodes_of_run.order().kind, Kind::halt);
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.order().kind, Kind::end);
  EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 143);
}

TEST(Coordinator, ALostNodeIsReplacedByOneThatComes) {
  Nodes nodes_of_run(nodes(2, 2, 1));
  nodes_of_run.come(0);
  nodes_of_run.come(1);
  nodes_of_run.start();
  nodes_of_run.be_silent(1);
  EXPECT_EQ(nodes_of_run.wait(seconds(14)).kind, Kind::run);
  EXPECT_EQ(nodes_of_run.wait(seconds(2)).kind, Kind::halt);
  EXPECT_THAT(nodes_of_run.order().outcome.message, HasSubstr("node 1 (host-1) gave no sign"));
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.order().kind, Kind::gather);
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.wait(seconds(10)).kind, Kind::gather);
  nodes_of_run.come(1);
  EXPECT_EQ(nodes_of_run.order().kind, Kind::run);
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, 2));
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
  EXPECT_EQ(nodes_of_run.wait(seconds(1)).kind, Kind::run);
  EXPECT_TRUE(nodes_of_run.order().refused.empty());
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, 2));
}

TEST(Coordinator, MakesRoomForNodesThatComeLater) {
  Nodes nodes_of_run(nodes(1, 2));
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.order().kind, Kind::halt);
  EXPECT_TRUE(nodes_of_run.order().outcome.message.empty());
  nodes_of_run.obey();
  nodes_of_run.order();
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.order().kind, Kind::run);
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, 1));
}

TEST(Coordinator, AStrangerHaltsNoRun) {
  Nodes nodes_of_run(nodes(1, 2));
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  const int64_t stranger = nodes_of_run.come(-1, "2");
  EXPECT_EQ(nodes_of_run.wait(seconds(1)).kind, Kind::run);
  EXPECT_THAT(nodes_of_run.order().refused.at(stranger), HasSubstr("this is version 2"));
}

TEST(Coordinator, RanksThatMadeRoomHaveEndedAsAskedAndAreNoRestart) {
  Nodes nodes_of_run(nodes(1, 2, /*restarts=*/1));
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  nodes_of_run.fail(0, "boo", 1);
  nodes_of_run.order();
  EXPECT_EQ(nodes_of_run.order().delay, 1);
  nodes_of_run.obey();
  nodes_of_run.start_after_last_call();
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.order().kind, Kind::halt);
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.order().kind, Kind::gather);
  EXPECT_EQ(nodes_of_run.order().delay, 0);
  EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 143);
  EXPECT_TRUE(nodes_of_run.order().outcome.message.empty());
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
  nodes_of_run.set(1, State::waiting);
  EXPECT_EQ(nodes_of_run.wait(seconds(2)).kind, Kind::run);
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
  EXPECT_EQ(nodes_of_run.order().kind, Kind::gather);
  nodes_of_run.stop(1, 15);
  EXPECT_EQ(nodes_of_run.order().kind, Kind::end);
  EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 143);
}

// Its agent was told to run, and then to stop.
TEST(Coordinator, ASignalBeforeRanksHaveStartedEndsTheRun) {
  Nodes nodes_of_run(nodes(2, 2));
  nodes_of_run.come();
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.order().kind, Kind::run);
  nodes_of_run.set(0, State::running);
  nodes_of_run.stop(1, 15);
  EXPECT_EQ(nodes_of_run.order().kind, Kind::halt);
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.order().kind, Kind::end);
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
    for (; step < 3000 && nodes_of_run.order().kind != Kind::end; ++step) {
      const auto agent = static_cast<int64_t>(random() % count);
      const auto members = nodes_of_run.members();
      if (nodes_of_run.order().kind == Kind::run) {
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
    EXPECT_EQ(nodes_of_run.order().kind, Kind::end) << "history " << history;
  }
}

}  // namespace
}  // namespace phalanx
