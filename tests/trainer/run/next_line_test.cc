// SPDX-License-Identifier: Apache-2.0
// A launcher that may start its ranks again prints how to go on itself, once.
#include "trainer/base/next_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/commands/command_fixture.h"
#include "trainer/commands/train/train.h"
#include "trainer/run/json_lines.h"
#include "trainer/run/run.h"

namespace phalanx::tiny {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Runs one rank in this process, and says what a test wants of its end.
class OneRank : public Launcher {
 public:
  using React = std::function<void(const RankOutcome&)>;
  using End = std::function<RankOutcome(const RankOutcome&, const React&)>;

  explicit OneRank(End end) : end_(std::move(end)) {}
  RankOutcome launch(const RankMain& rank_main) override {
    return end_(rank_main(Environment()), react_);
  }
  std::optional<Environment> environment() const override { return std::nullopt; }
  std::optional<int64_t> processes() const override { return 1; }
  void when_attempt_fails(const React& react) override { react_ = react; }

 private:
  End end_;
  React react_;
};

class NextLineTest : public CommandTest {
 protected:
  /// What is printed by a run that a signal ends.
  static std::string printed(const std::string& exp_dir, OneRank::End end) {
    const std::vector<std::string> arguments{"tiny.yaml", "exp_dir=" + exp_dir, "task.raises_at=3"};
    ::testing::internal::CaptureStdout();
    phalanx::Run run(arguments, std::make_shared<OneRank>(std::move(end)), "one");
    EXPECT_EQ(run.in_ranks([&run](World& world) { return train(world, run); }), 143);
    return ::testing::internal::GetCapturedStdout();
  }

  static std::vector<std::string> ends(const std::string& exp_dir) {
    return lines_of(exp_dir + "/ends.jsonl");
  }
};

TEST_F(NextLineTest, IsTheLaunchersOnceItIsLeftToIt) {
  const auto as_it_is = [](const RankOutcome& outcome, const OneRank::React&) { return outcome; };
  EXPECT_THAT(printed("before", as_it_is), Not(HasSubstr("next: "))) << "left to the rank";
  NextLine::leave_to_launcher();
  EXPECT_THAT(printed("ended", as_it_is), EndsWith("ended/config.yaml exp_dir=ended\n"));
  EXPECT_THAT(ends("ended"), ElementsAre(HasSubstr("\"signal\":15")));

  const auto as_a_node_that_leaves = [](RankOutcome outcome, const OneRank::React&) {
    outcome.told_elsewhere = true;
    return outcome;
  };
  EXPECT_THAT(printed("left", as_a_node_that_leaves), Not(HasSubstr("next: ")));
  EXPECT_THAT(ends("left"), IsEmpty());

  // The others wait for another node, and a signal ends them, too.
  const auto as_a_node_that_stays = [](RankOutcome outcome, const OneRank::React& react) {
    const RankOutcome stopped = outcome;
    outcome.reason = "node b leaves";
    react(outcome);
    return stopped;
  };
  EXPECT_THAT(printed("stayed", as_a_node_that_stays),
              EndsWith("stayed/config.yaml exp_dir=stayed\n"));
  EXPECT_THAT(ends("stayed"), ElementsAre(AllOf(HasSubstr("\"reason\":\"node b leaves\""),
                                                Not(HasSubstr("signal")))));
}

}  // namespace
}  // namespace phalanx::tiny
