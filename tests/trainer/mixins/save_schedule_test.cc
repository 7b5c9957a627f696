// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/save_schedule.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/trainer/loop/spy.h"

namespace phalanx::tiny {
namespace {

PlannedSaves to_come(const TrainingConfig& training, const CheckpointConfig& config,
                     int64_t step = 0) {
  Trainer<Spy> trainer(make_setup(Parts{}, training, {.name = "tiny", .exp_dir = "unused"},
                                  {{"spy", {}, config::Node::map()}}));
  trainer.restore({.step = step});
  return SaveSchedule(config).saves_to_come(trainer);
}

const TrainingConfig kTenSteps{.max_steps = 10, .batch_size = 4};

TEST(SavesToCome, AreCountedByStepsWithTheLast) {
  const auto count = [](std::optional<int64_t> every, int64_t step = 0) {
    const PlannedSaves saves = to_come(kTenSteps, {.save_every_n_steps = every}, step);
    EXPECT_TRUE(saves.are_all);
    return saves.count();
  };
  EXPECT_EQ(count(3), 4);
  EXPECT_EQ(count(5), 2);  // the last is one of them
  EXPECT_EQ(count(100), 1);
  EXPECT_EQ(count(3, 2), 4);
  EXPECT_EQ(count(3, 8), 2);
  EXPECT_EQ(count(3, 9), 1);
  EXPECT_EQ(count(3, 10), 0);
  EXPECT_EQ(count(std::nullopt), 1);
}

TEST(SavesToCome, AreNotAllWhereStepsAloneDoNotDecide) {
  const CheckpointConfig by_time{.save_every_n_seconds =
                                     config::Interval{std::chrono::seconds(60)}};
  EXPECT_FALSE(to_come(kTenSteps, by_time).are_all);
  EXPECT_FALSE(to_come(kTenSteps, {.keep_best = KeepBest{}}).are_all);
  EXPECT_EQ(to_come(kTenSteps, {.keep_best = KeepBest{}}, 4).last, 10);
  const PlannedSaves unknown =
      to_come({.max_seconds = config::Interval{std::chrono::seconds(60)}, .batch_size = 4},
              {.save_every_n_steps = 3});
  EXPECT_FALSE(unknown.are_all);
  EXPECT_EQ(unknown.count(), 0);
}

}  // namespace
}  // namespace phalanx::tiny
