// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/trainer/registered.h"
#include "trainer/api/lr_scheduler.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

std::shared_ptr<LrScheduler> schedule(const std::string& name, const std::string& yaml = "{}") {
  return make_registered<LrScheduler>(name, yaml);
}

std::vector<std::string> schedule_names() {
  return Registry<LrScheduler>::instance().table().names();
}

class EverySchedule : public testing::TestWithParam<std::string> {};

TEST_P(EverySchedule, IsBuiltFromItsDefaultsAndStaysBetweenZeroAndOne) {
  const auto made = schedule(GetParam());
  for (int64_t step = 1; step <= 120; ++step) {
    EXPECT_GE(made->factor(step, 100), 0) << step;
    EXPECT_LE(made->factor(step, 100), 1) << step;
  }
}

TEST_P(EverySchedule, WarmsUpLinearlyToOneAtTheWarmUpsLastStep) {
  const auto made = schedule(GetParam(), "{warmup_steps: 10}");
  for (int64_t step = 1; step <= 10; ++step) {
    EXPECT_DOUBLE_EQ(made->factor(step, 100), static_cast<double>(step) / 10);
  }
  EXPECT_LE(made->factor(11, 100), 1);
  EXPECT_GT(made->factor(11, 100), 0.9);
}

TEST_P(EverySchedule, NeverRisesAfterTheWarmUp) {
  const auto made = schedule(GetParam(), "{warmup_steps: 10}");
  for (int64_t step = 11; step <= 120; ++step) {
    EXPECT_LE(made->factor(step, 100), made->factor(step - 1, 100)) << step;
  }
}

TEST_P(EverySchedule, SaysTruthfullyWhetherItNeedsTheRunsLength) {
  const auto made = schedule(GetParam(), "{warmup_steps: 10}");
  EXPECT_EQ(made->factor(50, 100) != made->factor(50, 200), made->needs_total_steps());
}

INSTANTIATE_TEST_SUITE_P(Registered, EverySchedule, testing::ValuesIn(schedule_names()),
                         [](const auto& info) { return info.param; });

TEST(Schedules, AreAllRegistered) {
  EXPECT_THAT(schedule_names(),
              testing::IsSupersetOf({"constant", "cosine", "inverse_sqrt", "linear"}));
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
  for (const std::string name : {"linear", "cosine"}) {
    const auto own = schedule(name, "{decay_steps: 50, warmup_steps: 5}");
    const auto runs = schedule(name, "{warmup_steps: 5}");
    EXPECT_FALSE(own->needs_total_steps());
    for (int64_t step = 1; step <= 60; ++step) {
      EXPECT_EQ(own->factor(step, 1000), runs->factor(step, 50));
    }
  }
}

TEST(DecaySteps, MustExceedTheWarmUp) {
  EXPECT_THROW(schedule("cosine", "{decay_steps: 10, warmup_steps: 10}"), UserError);
}

TEST(Schedules, ARunThatEndsInItsWarmUpIsWarmingUpThroughout) {
  EXPECT_DOUBLE_EQ(schedule("cosine", "{warmup_steps: 10}")->factor(5, 5), 0.5);
}

}  // namespace
}  // namespace phalanx
