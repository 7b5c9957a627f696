// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/validation_mixin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/loop/spy.h"
#include "trainer/base/stop_signal.h"

namespace phalanx::tiny {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Due {
  const char* what;
  ValidationConfig config;
  State state;
  StepResult result;
  bool due;
};

class ValidationDue : public ::testing::TestWithParam<Due> {};

TEST_P(ValidationDue, FollowsTheConfig) {
  EXPECT_EQ(GetParam().config.due(GetParam().state, GetParam().result), GetParam().due);
}

const StepResult kAnyStep;
const StepResult kEpochsEnd{.ends_epoch = true};
const StepResult kLast{.ends_training = true};

INSTANTIATE_TEST_SUITE_P(
    , ValidationDue,
    ::testing::Values(
        Due{"by_default_at_the_end", {}, {.step = 9}, kLast, true},
        Due{"by_default_not_before", {}, {.step = 9}, kAnyStep, false},
        Due{"by_default_not_at_an_epochs_end", {}, {.step = 9}, kEpochsEnd, false},
        Due{"on_a_multiple", {.every_n_steps = 3}, {.step = 9}, kAnyStep, true},
        Due{"on_no_multiple", {.every_n_steps = 3}, {.step = 10}, kAnyStep, false},
        Due{"on_no_multiple_at_the_end", {.every_n_steps = 3}, {.step = 10}, kLast, true},
        Due{"never_at_the_end", {.every_n_steps = 3, .at_end = false}, {.step = 10}, kLast, false},
        Due{"after_the_second_epoch", {.every_n_epochs = 2}, {.epoch = 1}, kEpochsEnd, true},
        Due{"after_the_first_of_two", {.every_n_epochs = 2}, {.epoch = 0}, kEpochsEnd, false},
        Due{"in_the_second_epoch", {.every_n_epochs = 2}, {.epoch = 1}, kAnyStep, false},
        Due{"after_every_epoch", {.every_n_epochs = 1}, {.epoch = 0}, kEpochsEnd, true},
        Due{"by_steps_in_the_midst_of_epochs",
            {.every_n_steps = 2, .every_n_epochs = 5},
            {.epoch = 0, .step = 4},
            kAnyStep,
            true}),
    [](const auto& info) { return info.param.what; });

using Validated = Trainer<ValidationMixin, Spy>;

// The steps after which a run of seven steps, three an epoch, has validated.
std::vector<int64_t> validated_after(const ValidationConfig& config, int64_t validation_samples) {
  StopSignal::install();
  spy = {};
  std::vector<int64_t> steps;
  Parts parts{.task = std::make_shared<Regression>(
                  TaskOptions{.data = {.validation_samples = validation_samples}})};
  spy.at_step_end = [&, seen = int64_t{0}](TrainerBase& trainer) mutable {
    const int64_t validations = std::ranges::count(spy.events, "validation end");
    if (validations > seen) steps.push_back(trainer.state().step);
    seen = validations;
  };
  Validated trainer(
      make_setup(parts, {.max_steps = 7, .batch_size = 4}, {.name = "tiny", .exp_dir = "nowhere"},
                 {{"validation", {}, config::write(config)}, {"spy", {}, config::Node::map()}}));
  trainer.train();
  return steps;
}

TEST(ValidationMixin, ValidatesAfterTheStepsThatAreDue) {
  EXPECT_THAT(validated_after({.every_n_steps = 4}, 5), ElementsAre(4, 7));
  EXPECT_THAT(validated_after({.every_n_epochs = 1, .at_end = false}, 5), ElementsAre(3, 6));
  EXPECT_THAT(validated_after({.every_n_steps = 3, .every_n_epochs = 2}, 5), ElementsAre(3, 6, 7));
}

TEST(ValidationMixin, ValidatesBeforeTheFirstStep) {
  // What came before the first step is seen at its end.
  EXPECT_THAT(validated_after({.at_end = false, .at_start = true}, 5), ElementsAre(1));
  EXPECT_THAT(validated_after({.at_end = false}, 5), IsEmpty());
}

TEST(ValidationMixin, DoesNothingWithoutValidationData) {
  EXPECT_THAT(validated_after({.at_start = true}, 0), IsEmpty());
  EXPECT_THAT(validated_after({.every_n_steps = 1}, 0), IsEmpty());
}

// How many micro-batches of the validation data were computed before the first step.
size_t rehearsed(const ValidationConfig& config) {
  StopSignal::install();
  spy = {};
  Parts parts;
  std::optional<size_t> before;
  spy.at_step_start = [&](TrainerBase& trainer) {
    if (!before) before = parts.task->validated.size();
    EXPECT_EQ(trainer.state().phase, Phase::train);
  };
  Validated trainer(
      make_setup(parts, {.max_steps = 2, .batch_size = 2}, {.name = "tiny", .exp_dir = "nowhere"},
                 {{"validation", {}, config::write(config)}, {"spy", {}, config::Node::map()}}));
  trainer.train();
  return before.value();
}

TEST(ValidationMixin, RehearsesOneMicroBatchBeforeTheFirstStepWhereAValidationFollows) {
  EXPECT_EQ(rehearsed({.at_end = true}), 1U);
  EXPECT_EQ(rehearsed({.every_n_steps = 1000, .at_end = false}), 1U);
  EXPECT_EQ(rehearsed({.at_end = false, .at_start = true}), 3U) << "all of them, at once";
  EXPECT_EQ(rehearsed({.at_end = false}), 0U);
}

TEST(ValidationMixin, FailsBeforeTheFirstStepWhereAValidationWould) {
  StopSignal::install();
  spy = {};
  Parts parts{.task = std::make_shared<Regression>(TaskOptions{.validation_fails = true})};
  Validated trainer(make_setup(
      parts, {.max_steps = 7}, {.name = "tiny", .exp_dir = "nowhere"},
      {{"validation", {}, config::write(ValidationConfig{})}, {"spy", {}, config::Node::map()}}));
  EXPECT_THROW(trainer.train(), std::runtime_error);
  EXPECT_THAT(parts.task->trained, IsEmpty());
}

}  // namespace
}  // namespace phalanx::tiny
