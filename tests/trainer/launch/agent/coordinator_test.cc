// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

namespace phalanx {
namespace {

using State = AgentStatus::State;
using Kind = Order::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
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
                      .node_rank = node_rank,
                      .min_nodes = settings_.min_nodes,
                      .max_nodes = settings_.max_nodes,
                      .state = State::joining};
    return agent;
  }

  /// Those that are asked whether they fit answer, if a test does not keep them from it.
  const Order& order() {
    for (;;) {
      const Order& order = coordinator_.decide(agents_, now_);
      bool has_answered = false;
      for (const auto& [agent, ask] : order.asked) {
        AgentStatus& status = agents_[agent];
        const bool may_answer = status.state == State::joining || status.state == State::waiting;
        if (hanging_.contains(agent) || !may_answer || status.answered == ask) continue;
        const auto fits = fits_.find(agent);
        if (fits != fits_.end()) status.unfit = fits->second(ask);
        status.answered = ask;
        status.state = State::waiting;
        has_answered = true;
      }
      if (!has_answered) return order;
    }
  }
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
  /// It does not answer what it is asked.
  void hang(int64_t agent) { hanging_.insert(agent); }
  /// What it says to what it is asked: why it does not fit.
  void answer(int64_t agent, std::function<std::string(const JoinAsk&)> why_not) {
    fits_[agent] = std::move(why_not);
  }
  AgentStatus& status(int64_t agent) { return agents_[agent]; }
  void set(int64_t agent, State state) {
    agents_[agent].state = state;
    agents_[agent].has_stepped = state == State::running;
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
  /// By a signal, to this node or to another one's ranks.
  void stop(int64_t agent, int signal, bool is_told = true) {
    agents_[agent].end = {.outcome = {.exit_code = 128 + signal, .message = {}}};
    agents_[agent].is_told = is_told;
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
      const bool returns = !runs && status.state != State::joining;
      if (order().kind == Kind::gather && returns) status.state = State::waiting;
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
  Agents agents_;
  std::set<int64_t> silent_;
  std::set<int64_t> hanging_;
  std::map<int64_t, std::function<std::string(const JoinAsk&)>> fits_;
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

// ---- Nodes that come to a run, and leave it

std::string no_more_than_one_node(const JoinAsk& ask) {
  return ask.ranks_of_nodes.size() > 1 ? "does not fit" : "";
}

TEST(Coordinator, ANodeThatTheRunCannotGoOnWithIsRefusedAndTheRunGoesOn) {
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
  EXPECT_EQ(order.kind, Kind::run);
  EXPECT_EQ(order.round, 1);
  EXPECT_EQ(order.refused.at(newcomer), "does not fit");
  EXPECT_THAT(asked.ranks_of_nodes, ElementsAre(2, 3));
  EXPECT_EQ(asked.samples_a_step, 8);
  EXPECT_THAT(order.news, ElementsAre("node host-1 is refused: does not fit"));
}

TEST(Coordinator, NodesThatComeTogetherAreAskedOneBesideTheOther) {
  Nodes nodes_of_run(nodes(1, 3));
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  nodes_of_run.come();
  const int64_t third = nodes_of_run.come();
  nodes_of_run.answer(third, [](const JoinAsk& ask) {
    return ask.ranks_of_nodes.size() > 2 ? "three are too many" : "";
  });
  EXPECT_EQ(nodes_of_run.order().kind, Kind::halt);
  EXPECT_EQ(nodes_of_run.order().refused.at(third), "three are too many");
  EXPECT_EQ(nodes_of_run.order().reason, "node host-1 joins");
  nodes_of_run.obey();
  nodes_of_run.order();
  nodes_of_run.obey();
  nodes_of_run.wait(seconds(31));
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, 1));
}

TEST(Coordinator, ARoundThatHasJustBegunIsNotStoppedForANode) {
  Nodes nodes_of_run(nodes(1, 2));
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  nodes_of_run.status(0).has_stepped = false;
  const int64_t newcomer = nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.wait(seconds(60)).kind, Kind::run);
  EXPECT_FALSE(nodes_of_run.order().asked.contains(newcomer));
  nodes_of_run.status(0).has_stepped = true;
  EXPECT_EQ(nodes_of_run.order().kind, Kind::halt);
}

TEST(Coordinator, ANodeThatHangsWhileItJoinsGivesItsPlaceToOthers) {
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
  EXPECT_EQ(nodes_of_run.order().kind, Kind::run);
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, late));
}

TEST(Coordinator, AJoiningNodeThatHangsHaltsNoRunAndIsRefusedInTheEnd) {
  AgentSettings settings = nodes(1, 2);
  settings.join_timeout = seconds(60);
  Nodes nodes_of_run(settings);
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  const int64_t hangs = nodes_of_run.come();
  nodes_of_run.hang(hangs);
  EXPECT_EQ(nodes_of_run.wait(seconds(59)).kind, Kind::run);
  EXPECT_TRUE(nodes_of_run.order().refused.empty());
  nodes_of_run.wait(seconds(2));
  EXPECT_THAT(nodes_of_run.order().refused.at(hangs), HasSubstr("join_timeout"));
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.wait(seconds(1)).kind, Kind::halt);
}

TEST(Coordinator, ContradictingNumbersOfNodesAreTold) {
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

TEST(Coordinator, TheFirstNodeThatDoesNotFitEndsTheLaunchOnAllNodes) {
  Nodes nodes_of_run(nodes(2, 2));
  const int64_t first = nodes_of_run.come();
  nodes_of_run.answer(first, [](const JoinAsk&) { return "another run trains there"; });
  nodes_of_run.come();
  nodes_of_run.wait(seconds(1));
  EXPECT_EQ(nodes_of_run.order().kind, Kind::end);
  EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 2);
  EXPECT_EQ(nodes_of_run.order().outcome.message, "another run trains there");
}

TEST(Coordinator, ANodeThatLeavesEndsAloneAndTheOthersGoOn) {
  Nodes nodes_of_run(nodes(1, 2));  // without a restart: it is no failure
  nodes_of_run.come();
  nodes_of_run.come();
  nodes_of_run.wait(milliseconds(500));
  nodes_of_run.start();
  nodes_of_run.stop(0, 15, /*is_told=*/false);  // its ranks stop with the others'
  EXPECT_EQ(nodes_of_run.order().kind, Kind::halt);
  nodes_of_run.stop(1, 15);
  EXPECT_EQ(nodes_of_run.order().kind, Kind::gather);
  EXPECT_EQ(nodes_of_run.order().outcome.reason, "node host-1 leaves");
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0));
  nodes_of_run.set(0, State::waiting);
  nodes_of_run.set(1, State::left);
  EXPECT_EQ(nodes_of_run.wait(seconds(31)).kind, Kind::run);
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0));
}

// Its ranks have saved with the others', and it dies before it has said so.
TEST(Coordinator, ANodeThatIsKilledBetweenItsSaveAndItsGoodbyeHasLeft) {
  for (const bool is_noticed_first : {false, true}) {
    Nodes nodes_of_run(nodes(1, 2));  // without a restart: it is no failure
    nodes_of_run.come();
    nodes_of_run.come();
    nodes_of_run.wait(milliseconds(500));
    nodes_of_run.start();
    if (is_noticed_first) {
      nodes_of_run.set(1, State::left);
      EXPECT_EQ(nodes_of_run.order().kind, Kind::halt);
    } else {
      nodes_of_run.be_silent(1);
    }
    nodes_of_run.stop(0, 15, /*is_told=*/false);
    nodes_of_run.wait(seconds(16));
    EXPECT_EQ(nodes_of_run.order().kind, Kind::gather) << is_noticed_first;
    EXPECT_EQ(nodes_of_run.order().outcome.reason, "node host-1 leaves");
    EXPECT_EQ(nodes_of_run.order().delay, 0);
    nodes_of_run.set(0, State::waiting);
    EXPECT_EQ(nodes_of_run.wait(seconds(31)).kind, Kind::run);
    EXPECT_THAT(nodes_of_run.members(), ElementsAre(0));
  }
}

TEST(Coordinator, ANodeThatIsKilledWhileItMakesRoomEndsNoLaunch) {
  Nodes nodes_of_run(nodes(1, 3));
  nodes_of_run.come();
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  nodes_of_run.come();
  EXPECT_EQ(nodes_of_run.order().kind, Kind::halt);
  nodes_of_run.be_silent(1);
  nodes_of_run.obey();
  nodes_of_run.wait(seconds(16));
  EXPECT_EQ(nodes_of_run.order().kind, Kind::gather);
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.wait(seconds(31)).kind, Kind::run);
  EXPECT_THAT(nodes_of_run.members(), ElementsAre(0, 2));
}

// Nothing says that they have saved.
TEST(Coordinator, RanksThatFailWithALostNodeAreAFailure) {
  for (const bool meet_its_end : {false, true}) {
    Nodes nodes_of_run(nodes(1, 2));
    nodes_of_run.come();
    nodes_of_run.come();
    nodes_of_run.wait(milliseconds(500));
    nodes_of_run.start();
    nodes_of_run.set(1, State::left);
    nodes_of_run.order();
    if (meet_its_end) {
      nodes_of_run.fail(0, "rank 1 is gone", 5, /*by_peer=*/true);
    } else {
      nodes_of_run.obey();
    }
    EXPECT_EQ(nodes_of_run.order().kind, Kind::end);
    EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 1);
  }
}

TEST(Coordinator, TooFewNodesDoNotGoOnWithoutOneThatLeaves) {
  Nodes nodes_of_run(nodes(2, 3));
  nodes_of_run.come();
  nodes_of_run.come();
  nodes_of_run.start_after_last_call();
  nodes_of_run.stop(1, 15);
  nodes_of_run.order();
  nodes_of_run.obey();
  EXPECT_EQ(nodes_of_run.order().kind, Kind::end);
  EXPECT_EQ(nodes_of_run.order().outcome.exit_code, 143);
}

TEST(Coordinator, ASignalToTheNodeThatServesTheOthersEndsTheRun) {
  Nodes nodes_of_run(nodes(1, 2));
  nodes_of_run.come();
  nodes_of_run.come();
  nodes_of_run.wait(milliseconds(500));
  nodes_of_run.start();
  nodes_of_run.stop(0, 15);
  nodes_of_run.order();
  nodes_of_run.stop(1, 15, /*is_told=*/false);
  EXPECT_EQ(nodes_of_run.order().kind, Kind::end);
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
  EXPECT_EQ(order.kind, Kind::end);
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
