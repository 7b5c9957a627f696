// SPDX-License-Identifier: Apache-2.0
// How long a run is, which runs do not begin, and what a resume goes on with.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "tests/trainer/loop/spy.h"
#include "trainer/api/parameters.h"
#include "trainer/base/stop_signal.h"
#include "trainer/base/user_error.h"
#include "trainer/tensors/random.h"

namespace phalanx::tiny {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

config::Interval seconds(int64_t count) { return {std::chrono::seconds(count)}; }

struct Length {
  const char* what;
  TrainingConfig training;
  std::optional<int64_t> steps;  // that the limits tell beforehand
};

// Ten samples in batches of four: steps of 4, 4 and 2 samples an epoch.
class Limits : public ::testing::TestWithParam<Length> {};

TEST_P(Limits, EndTheRunWhereTheySaidItWouldEnd) {
  spy = {};
  StopSignal::install();
  Parts parts;
  const auto trainer = make_spied(parts, GetParam().training);
  EXPECT_EQ(trainer->total_steps(), GetParam().steps);
  EXPECT_FALSE(trainer->finished());
  trainer->train();
  EXPECT_TRUE(trainer->finished());
  EXPECT_EQ(trainer->state().step, GetParam().steps.value_or(1));
  for (const auto& result : spy.results) {
    EXPECT_EQ(result.ends_training, &result == &spy.results.back());
  }
  EXPECT_EQ(spy.events.back(), "training end");
}

INSTANTIATE_TEST_SUITE_P(
    , Limits,
    ::testing::Values(
        Length{"steps", {.max_steps = 5, .batch_size = 4}, 5},
        Length{"epochs", {.max_epochs = 2, .batch_size = 4}, 6},
        Length{"epochs_beyond_counting",
               {.max_steps = 5, .max_epochs = std::numeric_limits<int64_t>::max(), .batch_size = 4},
               5},
        Length{"a_whole_epoch_of_samples", {.max_samples = 10, .batch_size = 4}, 3},
        Length{"samples_in_the_next_epoch", {.max_samples = 11, .batch_size = 4}, 4},
        Length{"samples_of_whole_batches", {.max_samples = 18, .batch_size = 4}, 5},
        Length{"samples_reached_by_a_ragged_batch", {.max_samples = 19, .batch_size = 4}, 6},
        Length{"fewer_samples_than_a_batch", {.max_samples = 1, .batch_size = 4}, 1},
        Length{"the_first_of_several",
               {.max_steps = 50, .max_epochs = 2, .max_samples = 13, .batch_size = 4},
               4},
        Length{"epochs_with_accumulation",
               {.max_epochs = 3, .batch_size = 4, .gradient_accumulation_steps = 2},
               6},
        Length{"samples_with_accumulation",
               {.max_samples = 19, .batch_size = 4, .gradient_accumulation_steps = 2},
               4},
        Length{"global_batch", {.max_epochs = 3, .batch_size = 4, .global_batch_size = 8}, 6},
        Length{"steps_an_epoch", {.max_epochs = 3, .max_steps_per_epoch = 2, .batch_size = 4}, 6},
        Length{"steps_beyond_an_epoch",
               {.max_epochs = 2, .max_steps_per_epoch = 7, .batch_size = 4},
               6},
        Length{"samples_with_steps_an_epoch",
               {.max_samples = 21, .max_steps_per_epoch = 2, .batch_size = 4},
               6},
        Length{"accumulation_beyond_an_epoch",
               {.max_epochs = 2, .batch_size = 4, .gradient_accumulation_steps = 7},
               2}),
    [](const auto& info) { return info.param.what; });

TEST(TimeLimit, SecondsGoTogetherWithSteps) {
  Parts parts;
  const auto trainer =
      make_spied(parts, {.max_steps = 7, .max_seconds = seconds(1'000'000'000), .batch_size = 4});
  EXPECT_EQ(trainer->total_steps(), 7);
}

TEST(TimeLimit, SecondsCountThoseBeforeAResume) {
  spy = {};
  spy.at_restore = [](TrainerBase& trainer) {
    trainer.restore({.step = 2, .samples = 8, .epoch_samples = 8, .elapsed = 100});
  };
  Parts parts;
  const auto trainer = make_spied(parts, {.max_seconds = seconds(100), .batch_size = 4});
  trainer->train();
  EXPECT_EQ(trainer->state().step, 2);
  EXPECT_THAT(spy.events, ElementsAre("setup", "restore", "training start", "training end"));
}

TEST(TimeLimit, EndsTheRunAfterTheStepThatReachesIt) {
  spy = {};
  // Less than any step takes is left.
  spy.at_restore = [](TrainerBase& trainer) {
    trainer.restore({.step = 2, .elapsed = 99.9999999});
  };
  Parts parts;
  const auto trainer = make_spied(parts, {.max_seconds = seconds(100), .batch_size = 4});
  EXPECT_EQ(trainer->total_steps(), std::nullopt);
  trainer->train();
  EXPECT_EQ(trainer->state().step, 3);
  EXPECT_TRUE(spy.results.back().ends_training);
}

TEST(StepsAnEpoch, EndItAndBeginTheNextInAnotherOrder) {
  spy = {};
  Parts parts;
  make_spied(parts, {.max_epochs = 2, .max_steps_per_epoch = 2, .batch_size = 4})->train();
  const auto place = [](int64_t i, int64_t epoch) { return sample_at(i, epoch, 10); };
  EXPECT_THAT(parts.task->trained,
              ElementsAre(ElementsAre(place(0, 0), place(1, 0), place(2, 0), place(3, 0)),
                          ElementsAre(place(4, 0), place(5, 0), place(6, 0), place(7, 0)),
                          ElementsAre(place(0, 1), place(1, 1), place(2, 1), place(3, 1)),
                          ElementsAre(place(4, 1), place(5, 1), place(6, 1), place(7, 1))));
  EXPECT_EQ(std::count(spy.events.begin(), spy.events.end(), "epoch end"), 2);
  EXPECT_TRUE(spy.results[1].ends_epoch);
  EXPECT_FALSE(spy.results[0].ends_epoch);
}

TEST(StepsAnEpoch, EndWhereAResumedRunHasTakenThem) {
  spy = {};
  spy.at_restore = [](TrainerBase& trainer) {
    trainer.restore({.step = 1, .samples = 4, .epoch_samples = 4});
  };
  Parts parts;
  make_spied(parts, {.max_epochs = 1, .max_steps_per_epoch = 2, .batch_size = 4})->train();
  EXPECT_THAT(parts.task->trained, SizeIs(1));
}

TEST(Refusal, DataThatIsTooSmall) {
  for (const DataOptions& data :
       {DataOptions{.samples = 3, .drop_last = true}, DataOptions{.samples = 0}}) {
    const Parts parts{.task = std::make_shared<Regression>(TaskOptions{.data = data})};
    EXPECT_THAT([&] { make_spied(parts, {.max_steps = 1, .batch_size = 4}); },
                ThrowsMessage<UserError>(HasSubstr("training.batch_size")));
  }
}

TEST(Refusal, AScheduleThatCannotKnowTheRunsSteps) {
  const Parts parts{.schedule = std::make_shared<Schedule>([](int64_t, int64_t) { return 1.0; },
                                                           /*needs_total=*/true)};
  EXPECT_THAT([&] { make_spied(parts, {.max_seconds = seconds(1)}); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("max_seconds"), HasSubstr("max_steps"))));
  EXPECT_NO_THROW(make_spied(parts, {.max_epochs = 1, .max_seconds = seconds(1)}));
}

TEST(Refusal, AGlobalBatchThatDoesNotComeOutWhole) {
  EXPECT_THAT(
      [] { make_spied(Parts{}, {.max_steps = 1, .batch_size = 4, .global_batch_size = 6}); },
      ThrowsMessage<UserError>(HasSubstr("not a multiple of 4")));
}

// A run that stops after a step, and what a checkpoint would have kept of it.
struct Kept {
  State state;
  std::vector<double> weights;
  std::vector<at::Tensor> momenta;
  RngStates random;
};

Kept keep(TrainerBase& trainer) {
  Kept kept{.state = trainer.state(),
            .weights = weights_of(trainer.model()),
            .momenta = {},
            .random = rng_states()};
  for (const auto& view : trainer.optimizer_state()) kept.momenta.push_back(view.local.clone());
  return kept;
}

void put_back(const Kept& kept, TrainerBase& trainer) {
  set_weights(trainer.model(), kept.weights);
  auto views = trainer.optimizer_state();
  for (size_t i = 0; i < views.size(); ++i) views[i].local.copy_(kept.momenta[i]);
  set_rng_states(kept.random);
  trainer.restore(kept.state);
}

class Resume : public ::testing::TestWithParam<int64_t> {};

// Batches of four out of ten: step 3 ends an epoch.
TEST_P(Resume, GoesOnWithTheVerySameSteps) {
  const int64_t cut = GetParam();
  const TrainingConfig training{.max_steps = 8, .batch_size = 2, .gradient_accumulation_steps = 2};
  StopSignal::install();
  spy = {};
  seed_everything(1);
  Kept kept;
  spy.at_step_end = [&](TrainerBase& trainer) {
    if (trainer.state().step == cut) kept = keep(trainer);
  };
  Parts whole{.model = make_model(/*dropout=*/0.3)};
  const auto uninterrupted = make_spied(whole, training);
  uninterrupted->train();
  const auto expected = spy.results;

  spy = {};
  seed_everything(99);
  spy.at_restore = [&](TrainerBase& trainer) { put_back(kept, trainer); };
  Parts rest{.model = make_model(/*dropout=*/0.3)};
  const auto resumed = make_spied(rest, training);
  resumed->train();

  const size_t left = static_cast<size_t>(8 - cut);
  ASSERT_THAT(spy.results, SizeIs(left));
  for (size_t i = 0; i < left; ++i) {
    EXPECT_EQ(spy.results[i].losses(), expected[expected.size() - left + i].losses());
    EXPECT_EQ(spy.results[i].lr, expected[expected.size() - left + i].lr);
  }
  const auto& all = whole.task->trained;
  ASSERT_LT(rest.task->trained.size(), all.size());
  EXPECT_TRUE(std::equal(rest.task->trained.rbegin(), rest.task->trained.rend(), all.rbegin()));
  EXPECT_EQ(weights_of(*rest.model), weights_of(*whole.model));
  EXPECT_EQ(resumed->state().step, uninterrupted->state().step);
  EXPECT_EQ(resumed->state().samples, uninterrupted->state().samples);
  EXPECT_EQ(resumed->state().tokens, uninterrupted->state().tokens);
  EXPECT_EQ(resumed->state().epoch, uninterrupted->state().epoch);
  EXPECT_EQ(resumed->state().epoch_samples, uninterrupted->state().epoch_samples);
  EXPECT_GE(resumed->state().elapsed, kept.state.elapsed);
}

INSTANTIATE_TEST_SUITE_P(, Resume, ::testing::Values(1, 2, 3, 4, 6, 7), [](const auto& info) {
  return "after_step_" + std::to_string(info.param);
});

TEST(ResumeOfAFinishedRun, DoesNothing) {
  spy = {};
  spy.at_restore = [](TrainerBase& trainer) { trainer.restore({.epoch = 1, .step = 3}); };
  Parts parts;
  make_spied(parts, {.max_epochs = 1, .batch_size = 4})->train();
  EXPECT_THAT(parts.task->trained, IsEmpty());
  EXPECT_EQ(weights_of(*parts.model), weights_of(*make_model()));
}

}  // namespace
}  // namespace phalanx::tiny
