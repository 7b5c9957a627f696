// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/trainer/registered.h"
#include "trainer/api/lr_scheduler.h"
#include "trainer/api/stateful.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

std::shared_ptr<LrScheduler> schedule(const std::string& name, const std::string& yaml = "{}") {
  return make_registered<LrScheduler>(name, yaml);
}

std::vector<std::string> schedule_names() {
  return Registry<LrScheduler>::instance().table().names();
}

/// What each schedule needs that has mandatory fields, for a run of 100 or 200 steps.
const std::map<std::string, std::string> kMandatory = {
    {"chain", "schedules: [{name: constant, warmup_steps: 10}, cosine], milestones: [20]"},
    {"cosine_with_restarts", "cycle_steps: 30"},
    {"exponential", "gamma: 0.95"},
    {"multi_step", "milestones: [30, 60]"},
    {"warmup_stable_decay", "cooldown_steps: 60"},
};

/// Those whose warm-up is not a field of their own.
const std::set<std::string> kOtherWarmUp = {"chain", "one_cycle"};

std::shared_ptr<LrScheduler> usual(const std::string& name, int64_t warmup_steps = 0) {
  const auto found = kMandatory.find(name);
  std::string fields = found == kMandatory.end() ? "" : found->second;
  if (warmup_steps > 0 && !kOtherWarmUp.contains(name)) {
    fields += (fields.empty() ? "" : ", ") + ("warmup_steps: " + std::to_string(warmup_steps));
  }
  return schedule(name, "{" + fields + "}");
}

class EverySchedule : public testing::TestWithParam<std::string> {};

TEST_P(EverySchedule, StaysBetweenZeroAndOne) {
  const auto made = usual(GetParam());
  for (int64_t step = 1; step <= 120; ++step) {
    EXPECT_GE(made->factor(step, 100), 0) << step;
    EXPECT_LE(made->factor(step, 100), 1) << step;
  }
}

TEST_P(EverySchedule, WarmsUpLinearlyToOneAtTheWarmUpsLastStep) {
  if (GetParam() == "one_cycle") GTEST_SKIP() << "its rise is a share of its cycle";
  const auto made = usual(GetParam(), 10);
  for (int64_t step = 1; step <= 10; ++step) {
    EXPECT_DOUBLE_EQ(made->factor(step, 100), static_cast<double>(step) / 10);
  }
  EXPECT_LE(made->factor(11, 100), 1);
  EXPECT_GT(made->factor(11, 100), 0.9);
}

TEST_P(EverySchedule, NeverRisesAfterTheWarmUp) {
  if (GetParam() == "cosine_with_restarts" || GetParam() == "one_cycle") GTEST_SKIP() << "it does";
  const auto made = usual(GetParam(), 10);
  for (int64_t step = 11; step <= 120; ++step) {
    EXPECT_LE(made->factor(step, 100), made->factor(step - 1, 100)) << step;
  }
}

TEST_P(EverySchedule, SaysTruthfullyWhetherItNeedsTheRunsLength) {
  const auto made = usual(GetParam(), 10);
  EXPECT_EQ(made->factor(50, 100) != made->factor(50, 200), made->needs_total_steps());
}

INSTANTIATE_TEST_SUITE_P(Registered, EverySchedule, testing::ValuesIn(schedule_names()),
                         [](const auto& info) { return info.param; });

TEST(Schedules, AreAllRegistered) {
  EXPECT_THAT(schedule_names(),
              testing::IsSupersetOf({"chain", "constant", "cosine", "cosine_with_restarts",
                                     "exponential", "inverse_sqrt", "linear", "multi_step",
                                     "one_cycle", "plateau", "polynomial", "warmup_stable_decay"}));
}

TEST(Constant, StaysAtOne) { EXPECT_EQ(schedule("constant")->factor(1000, 10), 1); }

TEST(Linear, FallsInAStraightLineToItsEnd) {
  const auto made = schedule("linear", "{warmup_steps: 10, min_lr_ratio: 0.2}");
  EXPECT_DOUBLE_EQ(made->factor(55, 100), 0.6);
  EXPECT_DOUBLE_EQ(made->factor(100, 100), 0.2);
  EXPECT_DOUBLE_EQ(made->factor(150, 100), 0.2);
}

TEST(Cosine, FallsInHalfAWaveToItsEnd) {
  const auto made = schedule("cosine", "{warmup_steps: 10, min_lr_ratio: 0.2}");
  EXPECT_DOUBLE_EQ(made->factor(40, 100), 0.2 + 0.8 * 0.5 * (1 + std::cos(M_PI / 3)));
  EXPECT_DOUBLE_EQ(made->factor(100, 100), 0.2);
  EXPECT_DOUBLE_EQ(made->factor(150, 100), 0.2);
}

TEST(InverseSqrt, FallsWithTheRootOfTheStep) {
  const auto made = schedule("inverse_sqrt", "{warmup_steps: 4}");
  EXPECT_DOUBLE_EQ(made->factor(16, 100), 0.5);
  EXPECT_DOUBLE_EQ(made->factor(400, 100), 0.1);
}

TEST(DecaySteps, ReplaceTheRunsLength) {
  for (const std::string name : {"linear", "cosine", "polynomial", "one_cycle"}) {
    const std::string warmup = name == "one_cycle" ? "" : "warmup_steps: 5";
    const auto own = schedule(name, "{decay_steps: 50, " + warmup + "}");
    const auto runs = schedule(name, "{" + warmup + "}");
    EXPECT_FALSE(own->needs_total_steps());
    for (int64_t step = 1; step <= 60; ++step) {
      EXPECT_EQ(own->factor(step, 1000), runs->factor(step, 50));
    }
  }
}

TEST(DecaySteps, MustExceedTheWarmUp) {
  for (const std::string name : {"cosine", "linear", "polynomial"}) {
    EXPECT_THROW(schedule(name, "{decay_steps: 10, warmup_steps: 10}"), UserError) << name;
  }
}

TEST(Schedules, ARunThatEndsInItsWarmUpIsWarmingUpThroughout) {
  EXPECT_DOUBLE_EQ(schedule("cosine", "{warmup_steps: 10}")->factor(5, 5), 0.5);
}

TEST(Polynomial, FallsWithAPowerOfWhatIsLeft) {
  const auto made = schedule("polynomial", "{warmup_steps: 10, min_lr_ratio: 0.2, power: 2}");
  EXPECT_DOUBLE_EQ(made->factor(55, 100), 0.2 + 0.8 * 0.25);
  EXPECT_DOUBLE_EQ(made->factor(150, 100), 0.2);
}

TEST(WarmupStableDecay, StaysAtOneUntilTheCooldown) {
  const auto made =
      schedule("warmup_stable_decay", "{warmup_steps: 10, cooldown_steps: 20, decay_type: linear}");
  for (int64_t step = 10; step <= 80; ++step) EXPECT_EQ(made->factor(step, 100), 1) << step;
  EXPECT_DOUBLE_EQ(made->factor(90, 100), 0.5);
  EXPECT_EQ(made->factor(100, 100), 0);
  EXPECT_EQ(made->factor(90, 200), 1) << "of a longer run";
}

TEST(WarmupStableDecay, ShortensTheDecayOfARunThatIsTooShortForBoth) {
  const auto made =
      schedule("warmup_stable_decay", "{warmup_steps: 10, cooldown_steps: 20, decay_type: linear}");
  EXPECT_EQ(made->factor(10, 20), 1);
  EXPECT_DOUBLE_EQ(made->factor(15, 20), 0.5);
  EXPECT_EQ(made->factor(20, 20), 0);
}

TEST(WarmupStableDecay, RefusesPartsThatAreLongerThanTheWhole) {
  EXPECT_THROW(schedule("warmup_stable_decay", "{cooldown_steps: 6, decay_steps: 5}"), UserError);
  EXPECT_NO_THROW(
      schedule("warmup_stable_decay", "{warmup_steps: 2, cooldown_steps: 3, decay_steps: 5}"));
}

TEST(MultiStep, RefusesMilestonesThatDoNotAscendOrLieInTheWarmUp) {
  EXPECT_THROW(schedule("multi_step", "{milestones: [5, 5]}"), UserError);
  EXPECT_THROW(schedule("multi_step", "{milestones: [7, 5]}"), UserError);
  EXPECT_THROW(schedule("multi_step", "{milestones: [5], warmup_steps: 5}"), UserError);
  EXPECT_EQ(schedule("multi_step", "{milestones: []}")->factor(9, 10), 1);
}

TEST(CosineWithRestarts, BeginsEachCycleLower) {
  const auto made = schedule(
      "cosine_with_restarts",
      "{warmup_steps: 10, cycle_steps: 20, cycle_mult: 2, cycle_decay: 0.5, min_lr_ratio: 0.2}");
  EXPECT_DOUBLE_EQ(made->factor(20, 100), 0.6);
  EXPECT_DOUBLE_EQ(made->factor(30, 100), 0.2 + 0.8 * 0.5) << "the second cycle, of 40 steps";
  EXPECT_DOUBLE_EQ(made->factor(50, 100), 0.2 + 0.8 * 0.25);
  EXPECT_DOUBLE_EQ(made->factor(70, 100), 0.2 + 0.8 * 0.25) << "the third one, of 80";
}

TEST(OneCycle, BeginsAndEndsWithTorchsFirstAndLastRate) {
  const auto made = schedule("one_cycle");
  EXPECT_NEAR(made->factor(1, 100), 1.0 / 25, 1e-15);
  EXPECT_DOUBLE_EQ(made->factor(30, 100), 1);
  EXPECT_NEAR(made->factor(100, 100), 1.0 / 25e4, 1e-15);
  EXPECT_EQ(made->factor(200, 100), made->factor(100, 100)) << "a run that goes on behind its end";
}

TEST(OneCycle, RefusesToCycleTheMomentum) {
  EXPECT_THROW(schedule("one_cycle", "{cycle_momentum: true}"), UserError);
  EXPECT_THROW(schedule("one_cycle", "{three_phase: true, pct_start: 0.6}"), UserError);
}

TEST(OneCycle, OfOneStepHasARate) {
  for (const std::string yaml : {"{}", "{pct_start: 0}", "{pct_start: 1}", "{three_phase: true}"}) {
    for (int64_t total = 1; total <= 4; ++total) {
      for (int64_t step = 1; step <= total; ++step) {
        const double factor = schedule("one_cycle", yaml)->factor(step, total);
        EXPECT_TRUE(factor > 0 && factor <= 1) << yaml << " " << step << " of " << total;
      }
    }
  }
}

TEST(Plateau, FallsWhenValidationsGetNoBetter) {
  const auto made = schedule(
      "plateau", "{factor: 0.5, patience: 1, cooldown: 2, min_lr_ratio: 0.2, threshold: 0}");
  std::vector<double> factors;
  for (const double loss : {3.0, 2.0, 2.0, 2.5, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0}) {
    made->validated({{"accuracy", 0}, {"loss", loss}});
    factors.push_back(made->factor(1, 1));
  }
  EXPECT_THAT(factors, testing::ElementsAre(1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25));
}

TEST(Plateau, KeepsItsStateThroughAResume) {
  const std::string yaml = "{factor: 0.5, patience: 2, cooldown: 1, metric: f1, mode: max}";
  const std::vector<double> values{0.1, 0.3, 0.3, 0.2, 0.3, 0.1, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4};
  for (size_t cut = 0; cut <= values.size(); ++cut) {
    const auto whole = schedule("plateau", yaml);
    auto resumed = schedule("plateau", yaml);
    for (size_t i = 0; i < values.size(); ++i) {
      if (i == cut) {
        const std::string json = resumed->kept_state()->json();
        resumed = schedule("plateau", yaml);
        resumed->kept_state()->restore(json);
      }
      whole->validated({{"f1", values[i]}});
      resumed->validated({{"f1", values[i]}});
      EXPECT_EQ(resumed->factor(1, 1), whole->factor(1, 1)) << cut << " " << i;
    }
    EXPECT_LT(whole->factor(1, 1), 0.5) << "it has fallen twice";
  }
}

TEST(Plateau, RefusesAMetricThatIsNotThereAndAStateThatIsNone) {
  const auto made = schedule("plateau", "{metric: f1}");
  EXPECT_THROW(made->validated({{"loss", 1}}), UserError);
  EXPECT_THROW(made->kept_state()->restore("{}"), UserError);
}

TEST(Chain, RefusesAScheduleThatGoesByValidations) {
  EXPECT_THROW(schedule("chain", "{schedules: [constant, plateau], milestones: [5]}"), UserError);
}

TEST(Chain, CountsTheStepsOfEachFromItsOwnBeginning) {
  const auto made = schedule(
      "chain",
      "{schedules: [{name: constant, warmup_steps: 4}, linear, {name: exponential, gamma: 0.5}], "
      "milestones: [6, 16]}");
  EXPECT_FALSE(made->needs_total_steps()) << "the last one does not";
  EXPECT_DOUBLE_EQ(made->factor(2, 100), 0.5);
  EXPECT_DOUBLE_EQ(made->factor(6, 100), 1);
  EXPECT_DOUBLE_EQ(made->factor(11, 100), 0.5) << "the middle of steps 7 to 16";
  EXPECT_DOUBLE_EQ(made->factor(16, 100), 0);
  EXPECT_DOUBLE_EQ(made->factor(17, 100), 0.5);
  EXPECT_DOUBLE_EQ(made->factor(18, 100), 0.25);
}

TEST(Chain, EndsItsLastScheduleWithTheRun) {
  const auto made = schedule("chain", "{schedules: [constant, linear], milestones: [50]}");
  EXPECT_TRUE(made->needs_total_steps());
  EXPECT_DOUBLE_EQ(made->factor(75, 100), 0.5);
  EXPECT_DOUBLE_EQ(made->factor(100, 150), 0.5);
}

TEST(Chain, RefusesMilestonesThatDoNotFit) {
  EXPECT_THROW(schedule("chain", "{schedules: [], milestones: []}"), UserError);
  EXPECT_THROW(schedule("chain", "{schedules: [constant], milestones: [5]}"), UserError);
  EXPECT_THROW(schedule("chain", "{schedules: [constant, linear], milestones: []}"), UserError);
  EXPECT_THROW(schedule("chain", "{schedules: [constant, linear, cosine], milestones: [5, 5]}"),
               UserError);
  EXPECT_THROW(schedule("chain", "{schedules: [constant, no_such_schedule], milestones: [5]}"),
               UserError);
}

}  // namespace
}  // namespace phalanx
