// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/save_schedule.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/trainer/loop/spy.h"

namespace phalanx::tiny {
namespace {

std::optional<int64_t> saves_left(const TrainingConfig& training, const CheckpointConfig& config,
                                  int64_t step = 0) {
  Trainer<Spy> trainer(make_setup(Parts{}, training, {.name = "tiny", .exp_dir = "unused"},
                                  {{"spy", {}, config::Node::map()}}));
  trainer.restore({.step = step});
  return SaveSchedule(config).saves_left(trainer);
}

const TrainingConfig kTenSteps{.max_steps = 10, .batch_size = 4};

TEST(SavesLeft, AreCountedByStepsWithTheLast) {
  EXPECT_EQ(saves_left(kTenSteps, {.save_every_n_steps = 3}), 4);
  EXPECT_EQ(saves_left(kTenSteps, {.save_every_n_steps = 5}), 2);  // the last is one of them
  EXPECT_EQ(saves_left(kTenSteps, {.save_every_n_steps = 100}), 1);
  EXPECT_EQ(saves_left(kTenSteps, {.save_every_n_steps = 3}, 2), 4);
  EXPECT_EQ(saves_left(kTenSteps, {.save_every_n_steps = 3}, 8), 2);
  EXPECT_EQ(saves_left(kTenSteps, {.save_every_n_steps = 3}, 9), 1);
  EXPECT_EQ(saves_left(kTenSteps, {.save_every_n_steps = 3}, 10), 0);
  EXPECT_EQ(saves_left(kTenSteps, {.save_every_n_steps = std::nullopt}), 1);
}

TEST(SavesLeft, AreNotKnownWhereStepsDoNotDecide) {
  EXPECT_EQ(
      saves_left(kTenSteps, {.save_every_n_seconds = config::Interval{std::chrono::seconds(60)}}),
      std::nullopt);
  EXPECT_EQ(saves_left(kTenSteps, {.keep_best = KeepBest{}}), std::nullopt);
  EXPECT_EQ(saves_left({.max_seconds = 60, .batch_size = 4}, {.save_every_n_steps = 3}),
            std::nullopt);
}

}  // namespace
}  // namespace phalanx::tiny
