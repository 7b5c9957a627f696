// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/beyond_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/trainer/commands/command_fixture.h"
#include "trainer/api/state.h"
#include "trainer/loop/training_config.h"

namespace phalanx::tiny {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

State done() {
  State state;
  state.step = 10;
  state.epoch = 2;
  state.samples = 40;
  return state;
}

TEST(BeyondLimit, OfStepsEpochsOrSamplesNamesBothNumbersAndTheField) {
  EXPECT_THAT(
      beyond_limit({.max_steps = 9}, done(), 4),
      Optional(AllOf(HasSubstr("trained 10 steps already, more than training.max_steps (9)"),
                     HasSubstr("raise training.max_steps"))));
  EXPECT_THAT(beyond_limit({.max_steps = 20, .max_epochs = 1}, done(), 4),
              Optional(HasSubstr("trained 2 epochs already, more than training.max_epochs (1)")));
  EXPECT_THAT(
      beyond_limit({.max_steps = 20, .max_samples = 36}, done(), 4),
      Optional(HasSubstr("trained 40 samples already, more than training.max_samples (36)")));
}

TEST(BeyondLimit, CountsAnEpochThatHasBegun) {
  State state = done();
  EXPECT_EQ(beyond_limit({.max_epochs = 2}, state, 4), std::nullopt);
  state.epoch_samples = 4;
  EXPECT_THAT(beyond_limit({.max_epochs = 2}, state, 4),
              Optional(HasSubstr("trained a part of epoch 3 already, more than")));
}

TEST(BeyondLimit, OfARunAtItsEndIsNone) {
  EXPECT_EQ(beyond_limit({.max_steps = 10, .max_epochs = 2, .max_samples = 40}, done(), 4),
            std::nullopt);
  EXPECT_EQ(beyond_limit({.max_steps = 20, .max_samples = 37}, done(), 4), std::nullopt)
      << "its last step has exceeded them";
  EXPECT_EQ(beyond_limit({.max_steps = 20, .max_samples = 20}, done(), 0), std::nullopt)
      << "the samples of a step are not known";
}

class BeyondLimitOfARun : public CommandTest {};

TEST_F(BeyondLimitOfARun, IsWarnedOfAtItsStart) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run"}).code, 0);
  const Outcome again = run({"tiny.yaml", "exp_dir=run"});
  EXPECT_THAT(again.errors, Not(HasSubstr("already")));
  const Outcome fewer = run({"tiny.yaml", "exp_dir=run", "training.max_steps=3"});
  EXPECT_EQ(fewer.code, 0) << fewer.errors;
  EXPECT_THAT(fewer.errors, HasSubstr("warning: the run has trained 8 steps already"));
}

}  // namespace
}  // namespace phalanx::tiny
