// SPDX-License-Identifier: Apache-2.0
// The loop's arithmetic: what a step computes, and how far a run goes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "tests/trainer/loop/spy.h"
#include "trainer/base/stop_signal.h"
#include "trainer/base/user_error.h"

namespace phalanx::tiny {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Batches = std::vector<std::vector<int64_t>>;

const TrainerConfig kDouble{
    .name = "tiny", .exp_dir = "nowhere", .use_double_weight_precision = true};

class Loop : public ::testing::Test {
 protected:
  void SetUp() override {
    spy = {};
    StopSignal::install();
  }

  // Trains new parts to the end of `training`.
  Parts train(const TrainingConfig& training, TaskOptions options = {},
              const TrainerConfig& trainer = kDouble) {
    spy = {};
    Parts parts{.task = std::make_shared<Regression>(std::move(options))};
    make_spied(parts, training, trainer)->train();
    return parts;
  }
};

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::abs(b[i]))) << i;
  }
}

// Descent on the weighted mean of squares, written out for one number after the other.
std::vector<double> weights_by_hand(const Batches& steps, double lr) {
  std::vector<double> weights(4), momenta(4);
  for (const auto& samples : steps) {
    std::vector<double> gradient(4);
    double tokens = 0;
    for (const int64_t i : samples) tokens += static_cast<double>(tokens_of(i));
    for (const int64_t i : samples) {
      const auto x = static_cast<double>(i);
      const double row[] = {std::sin(x), (2 * x + 1) / 3, 1 / (x + 1), 1};
      double error = -std::cos(x / 7);
      for (int k = 0; k < 4; ++k) error += weights[k] * row[k];
      for (int k = 0; k < 4; ++k) {
        gradient[k] += static_cast<double>(tokens_of(i)) / tokens * 2 * error * row[k];
      }
    }
    for (int k = 0; k < 4; ++k) {
      momenta[k] = 0.5 * momenta[k] + gradient[k];
      weights[k] -= lr * momenta[k];
    }
  }
  return weights;
}

TEST_F(Loop, MovesTheWeightsAsByHand) {
  Parts parts{.optimizer = std::make_shared<Descent>(0.01)};
  make_spied(parts, {.max_steps = 5, .batch_size = 4}, kDouble)->train();
  ASSERT_THAT(parts.task->trained, SizeIs(5));
  const auto by_hand = weights_by_hand(parts.task->trained, 0.01);
  EXPECT_GT(std::abs(by_hand[1]), 0.01);
  expect_near(weights_of(*parts.model), by_hand, 1e-12);
}

TEST_F(Loop, AccumulationIsTheWholeBatchWhateverTheSplit) {
  const TaskOptions two_parts{.parts = {"size", "error"}};
  const Parts whole = train({.max_steps = 6, .batch_size = 10}, two_parts);
  const auto whole_results = spy.results;
  const Parts split =
      train({.max_steps = 6, .batch_size = 3, .gradient_accumulation_steps = 4}, two_parts);
  EXPECT_THAT(split.task->trained, SizeIs(24));
  EXPECT_EQ(split.task->trained[3].size(), 1u) << "the micro-batches should be ragged";
  expect_near(weights_of(*split.model), weights_of(*whole.model), 1e-12);
  for (size_t i = 0; i < whole_results.size(); ++i) {
    const NamedValues a = spy.results[i].losses();
    const NamedValues b = whole_results[i].losses();
    ASSERT_EQ(a.size(), 3u);
    for (size_t p = 0; p < 3; ++p) {
      EXPECT_EQ(a[p].first, b[p].first);
      EXPECT_NEAR(a[p].second, b[p].second, 1e-12 * std::max(1.0, b[p].second));
    }
    EXPECT_EQ(spy.results[i].samples, 10);
    EXPECT_EQ(spy.results[i].tokens, whole_results[i].tokens);
  }
}

TEST_F(Loop, AnEpochsLastStepMayHoldFewerMicroBatches) {
  const Parts split = train({.max_epochs = 3, .batch_size = 4, .gradient_accumulation_steps = 2});
  const auto split_states = spy.states;
  const Parts whole = train({.max_epochs = 3, .batch_size = 8});
  ASSERT_EQ(split_states.size(), spy.states.size());
  for (size_t i = 0; i < split_states.size(); ++i) {
    EXPECT_EQ(split_states[i].samples, spy.states[i].samples);
  }
  expect_near(weights_of(*split.model), weights_of(*whole.model), 1e-12);
}

TEST_F(Loop, NamedPartsAreSummedAndKeptApart) {
  train({.max_steps = 1, .batch_size = 4}, {.parts = {"size", "error"}});
  const NamedValues losses = spy.results.front().losses();
  ASSERT_EQ(losses.size(), 3u);
  EXPECT_EQ(losses[0].first, "loss");
  EXPECT_EQ(losses[1].first, "size");
  EXPECT_EQ(losses[2].first, "error");
  EXPECT_EQ(losses[1].second, 0) << "the weights start at 0";
  EXPECT_GT(losses[2].second, 0);
  EXPECT_DOUBLE_EQ(losses[0].second, losses[1].second + losses[2].second);
}

TEST_F(Loop, PartsMustBeTheSameInEveryMicroBatch) {
  EXPECT_THROW(train({.max_steps = 1, .batch_size = 2, .gradient_accumulation_steps = 2},
                     {.parts = {"error"}, .parts_change = true}),
               std::logic_error);
}

TEST_F(Loop, CountsStepsSamplesTokensAndEpochs) {
  const Parts parts = train({.max_steps = 4, .batch_size = 4});
  std::vector<std::array<int64_t, 4>> counted;
  for (const State& s : spy.states)
    counted.push_back({s.step, s.samples, s.epoch, s.epoch_samples});
  using Row = std::array<int64_t, 4>;
  EXPECT_THAT(counted,
              ElementsAre(Row{1, 4, 0, 4}, Row{2, 8, 0, 8}, Row{3, 10, 0, 10}, Row{4, 14, 1, 4}));
  int64_t tokens = 0;
  for (const auto& batch : parts.task->trained) {
    for (const int64_t i : batch) tokens += tokens_of(i);
  }
  EXPECT_EQ(spy.states.back().tokens, tokens);
  EXPECT_EQ(parts.task->states[1].step, 2) << "inside a step the state has its number";
  EXPECT_EQ(parts.task->states[1].samples, 4) << "but counts only what is done";
  EXPECT_TRUE(spy.results[2].ends_epoch);
  EXPECT_FALSE(spy.results[1].ends_epoch);
  EXPECT_FALSE(spy.results[2].ends_training);
  EXPECT_TRUE(spy.results[3].ends_training);
}

TEST_F(Loop, EveryEpochSeesEverySampleOnce) {
  const Parts parts = train({.max_epochs = 2, .batch_size = 4});
  ASSERT_THAT(parts.task->trained, SizeIs(6));
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<int64_t> seen;
    for (int b = 0; b < 3; ++b) {
      const auto& batch = parts.task->trained[static_cast<size_t>(epoch * 3 + b)];
      seen.insert(seen.end(), batch.begin(), batch.end());
    }
    EXPECT_EQ(seen.front(), sample_at(0, epoch, 10));
    std::sort(seen.begin(), seen.end());
    EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  }
}

TEST_F(Loop, TheLearningRateOfAStepIsTheSchedulesValueAtIt) {
  Parts parts;
  parts.schedule = std::make_shared<Schedule>(
      [](int64_t step, int64_t total) { return 1.0 / static_cast<double>(step + 100 * total); });
  make_spied(parts, {.max_steps = 5, .batch_size = 4})->train();
  ASSERT_THAT(parts.optimizer->rates, SizeIs(5));
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(parts.optimizer->rates[i], 0.1 * (1.0 / static_cast<double>(i + 1 + 500)));
    EXPECT_EQ(spy.results[i].lr, parts.optimizer->rates[i]);
  }
}

double norm_of(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

TEST_F(Loop, ClipsByNorm) {
  const TrainingConfig free{.max_steps = 1, .batch_size = 4};
  const std::vector<double> gradient = train(free).optimizer->gradients.front();
  EXPECT_FALSE(spy.results.front().grad_norm) << "nobody asked for the norm";
  const double norm = norm_of(gradient);

  TrainingConfig clipped = free;
  clipped.clip_grad_norm = norm / 4;
  const std::vector<double> scaled = train(clipped).optimizer->gradients.front();
  for (size_t i = 0; i < gradient.size(); ++i) {
    EXPECT_NEAR(scaled[i], gradient[i] * (norm / 4) / (norm + 1e-6), 1e-12);
  }
  EXPECT_NEAR(spy.results.front().grad_norm->item<double>(), norm, 1e-12) << "before clipping";

  clipped.clip_grad_norm = norm * 2;
  EXPECT_EQ(train(clipped).optimizer->gradients.front(), gradient);
}

TEST_F(Loop, ClipsByValue) {
  const TrainingConfig free{.max_steps = 1, .batch_size = 4};
  const std::vector<double> gradient = train(free).optimizer->gradients.front();
  TrainingConfig clipped = free;
  clipped.clip_grad_value = 0.75;
  const std::vector<double> clamped = train(clipped).optimizer->gradients.front();
  for (size_t i = 0; i < gradient.size(); ++i) {
    EXPECT_EQ(clamped[i], std::clamp(gradient[i], -0.75, 0.75));
  }
  EXPECT_NE(clamped, gradient);
}

TEST_F(Loop, AMixinMayAskForOneStepsGradientNorm) {
  spy = {};
  spy.at_step_start = [](TrainerBase& trainer) {
    if (trainer.state().step == 2) trainer.request_grad_norm();
  };
  Parts parts;
  make_spied(parts, {.max_steps = 3, .batch_size = 4}, kDouble)->train();
  EXPECT_FALSE(spy.results[0].grad_norm);
  ASSERT_TRUE(spy.results[1].grad_norm);
  EXPECT_NEAR(spy.results[1].grad_norm->item<double>(), norm_of(parts.optimizer->gradients[1]),
              1e-12);
  EXPECT_FALSE(spy.results[2].grad_norm);
}

TEST_F(Loop, GradientsDoNotReachIntoTheNextStep) {
  const Parts parts = train({.max_steps = 3, .batch_size = 10});
  const Parts alone = train({.max_steps = 1, .batch_size = 10});
  EXPECT_EQ(parts.optimizer->gradients[0], alone.optimizer->gradients[0]);
  expect_near(weights_of(*parts.model), weights_by_hand(parts.task->trained, 0.1), 1e-12);
}

TEST_F(Loop, ANonfiniteLossEndsTheRunWithTheWeightsUntouched) {
  const auto expected = weights_of(*train({.max_steps = 2, .batch_size = 4}).model);
  spy = {};
  Parts parts{.task = std::make_shared<Regression>(
                  TaskOptions{.parts = {"size", "error"}, .not_a_number_at = 3})};
  const auto reference = train({.max_steps = 2, .batch_size = 4}, {.parts = {"size", "error"}});
  spy = {};
  const auto trainer = make_spied(parts, {.max_steps = 5, .batch_size = 4}, kDouble);
  try {
    trainer->train();
    FAIL() << "the run went on";
  } catch (const UserError&) {
    FAIL() << "this is not the user's mistake";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the error is nan"));
    EXPECT_THAT(error.what(), HasSubstr("guards.on_nonfinite: skip"));
  }
  EXPECT_EQ(trainer->state().step, 3);
  EXPECT_THAT(parts.optimizer->rates, SizeIs(2));
  EXPECT_EQ(weights_of(*parts.model), weights_of(*reference.model));
  EXPECT_THAT(spy.events, Not(Contains("training end")));
}

TEST_F(Loop, ANonfiniteLossIsPassedOnWhereTheConfigSaysSo) {
  const Parts parts = train({.max_steps = 3, .batch_size = 4, .stop_on_nonfinite_loss = false},
                            {.not_a_number_at = 2});
  EXPECT_THAT(parts.optimizer->rates, SizeIs(3));
  EXPECT_TRUE(std::isnan(weights_of(*parts.model).front()));
}

TEST_F(Loop, AnErrorInAStepLeavesItsNumber) {
  Parts parts{.task = std::make_shared<Regression>(TaskOptions{.fails_at = 4})};
  const auto trainer = make_spied(parts, {.max_steps = 5, .batch_size = 4});
  EXPECT_THROW(trainer->train(), std::runtime_error);
  EXPECT_EQ(trainer->state().step, 4);
}

TEST_F(Loop, PrecisionIsDoubleEverywhereOrNowhere) {
  const Parts twice = train({.max_steps = 2, .batch_size = 4, .clip_grad_norm = 1.0});
  EXPECT_THAT(twice.task->dtypes, Each(at::kDouble));
  EXPECT_THAT(twice.optimizer->dtypes, Each(at::kDouble));
  for (const auto& view : twice.optimizer->state()) EXPECT_EQ(view.dtype, at::kDouble);
  EXPECT_EQ(spy.results[0].grad_norm->scalar_type(), at::kDouble);
  EXPECT_EQ(spy.results[0].loss_parts[0].second.scalar_type(), at::kDouble);

  const Parts once = train({.max_steps = 2, .batch_size = 4}, {}, {.name = "tiny", .exp_dir = "x"});
  EXPECT_THAT(once.task->dtypes, Each(at::kFloat));
  EXPECT_THAT(once.optimizer->dtypes, Each(at::kFloat));
  for (const auto& view : once.optimizer->state()) EXPECT_EQ(view.dtype, at::kFloat);
}

TEST_F(Loop, ASignalEndsTheRunAfterTheStep) {
  spy.at_before_forward = [](TrainerBase& trainer) {
    if (trainer.state().step == 2) std::raise(SIGTERM);
  };
  Parts parts;
  const auto trainer = make_spied(parts, {.max_steps = 9, .batch_size = 4});
  trainer->train();
  EXPECT_EQ(StopSignal::received(), SIGTERM);
  EXPECT_EQ(trainer->state().step, 2);
  EXPECT_THAT(parts.optimizer->rates, SizeIs(2)) << "the step is finished first";
  EXPECT_FALSE(trainer->finished());
  EXPECT_THAT(spy.events, Not(Contains("epoch end"))) << "the epoch is not over";
  EXPECT_EQ(spy.events.back(), "training end");

  StopSignal::install();
  EXPECT_EQ(StopSignal::received(), 0);
}

TEST_F(Loop, BatchesWithoutTokensAreATasksMistake) {
  EXPECT_THROW(train({.max_steps = 1, .batch_size = 4}, {.data = {.without_tokens = true}}),
               std::logic_error);
}

TEST_F(Loop, DataThatEndsBeforeItPromisedIsAnErrorAndNoEndlessLoop) {
  EXPECT_THROW(train({.max_steps = 9, .batch_size = 4}, {.data = {.promised_samples = 12}}),
               std::logic_error);
}

TEST(TrainerBase, HasWhatTrainsOnlyWhereItIsToTrain) {
  Parts parts;
  const auto trainer = make_spied(parts, {.max_steps = 1, .batch_size = 2}, kDouble);
  EXPECT_EQ(trainer->optimizers().front().optimizer, parts.optimizer);
  EXPECT_EQ(trainer->training_data().samples_per_epoch(), 10);

  TrainerSetup setup = make_setup(parts, {.max_steps = 1, .batch_size = 2}, kDouble,
                                  {{"spy", {}, config::Node::map()}});
  setup.purpose = Purpose::evaluation;
  setup.components.optimizer = nullptr;
  setup.components.lr_scheduler = nullptr;
  const SpiedTrainer evaluator(std::move(setup));
  EXPECT_THROW(evaluator.optimizer_state(), std::logic_error);
  EXPECT_THROW(evaluator.training_data(), std::logic_error);
}

}  // namespace
}  // namespace phalanx::tiny
