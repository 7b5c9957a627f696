// SPDX-License-Identifier: Apache-2.0
// Steps of a task that moves two optimizers in its own order.

#include "tests/trainer/loop/two_optimizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/loop/spy.h"

namespace phalanx::tiny {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// What there is to compare of a run.
struct Outcome {
  std::vector<double> weights;
  std::vector<StepResult> results;
  TwoOptimizers two;
  std::string error = "none";
};

Outcome train(const OwnStep::Run& run,
              const TrainingConfig& training = {
                  .max_steps = 2, .batch_size = 2, .gradient_accumulation_steps = 2}) {
  spy = {};
  Outcome outcome;
  Parts parts;
  parts.task = std::make_shared<OwnStep>(run);
  TrainerSetup setup = make_setup(
      parts, training, {.name = "tiny", .exp_dir = "nowhere", .use_double_weight_precision = true},
      {{"spy", {}, config::Node::map()}});
  setup.components.optimizer = nullptr;
  setup.optimizers = outcome.two.make_parts();
  try {
    Trainer<Spy>(std::move(setup)).train();
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  outcome.weights = weights_of(*parts.model);
  outcome.results = spy.results;
  return outcome;
}

void backward(OwnStep& task, TrainingStep& step, Regressor& model, const std::string& name,
              std::vector<std::string> into = {}) {
  const auto& batch = static_cast<const Samples&>(*step.micro_batches().front());
  const at::Tensor loss = task.compute_loss(model, batch, step.state()).total();
  step.backward(loss, {.name = name, .into = std::move(into)});
}

TEST(TwoOptimizersStep, IsThatOfALoopByHand) {
  const Outcome outcome = train(gan_step);
  EXPECT_EQ(outcome.error, "none");
  const std::vector<double> expected = gan_by_hand({});
  ASSERT_THAT(outcome.weights, SizeIs(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(outcome.weights[i], expected[i], 1e-12) << i;
  }
  EXPECT_THAT(outcome.two.critic->rates, ElementsAre(0.05, 0.05, 0.025, 0.025));
  EXPECT_THAT(outcome.two.generator->rates, ElementsAre(0.1, 0.1));
}

TEST(TwoOptimizersStep, SaysWhatEachHasDone) {
  const TrainingConfig clipped{
      .max_steps = 2, .batch_size = 2, .gradient_accumulation_steps = 2, .clip_grad_norm = 1e-3};
  const Outcome outcome = train(gan_step, clipped);
  ASSERT_THAT(outcome.results, SizeIs(2));
  const StepResult& second = outcome.results[1];
  ASSERT_THAT(second.optimizers, SizeIs(2));
  EXPECT_EQ(second.optimizers[0].name, "critic");
  EXPECT_EQ(second.optimizers[0].lr, 0.025);
  EXPECT_EQ(second.optimizers[1].name, "generator");
  EXPECT_EQ(second.optimizers[1].lr, 0.1);
  EXPECT_TRUE(second.optimizers[1].grad_norm);
  EXPECT_FALSE(second.grad_norm) << "there is no one norm";
  // Each by its own norm: one element has all of it.
  EXPECT_NEAR(std::abs(outcome.two.critic->gradients.front().front()), 1e-3, 1e-6);
  const NamedValues losses = second.losses();
  ASSERT_THAT(losses, SizeIs(3));
  EXPECT_EQ(losses[1].first, "critic");
  EXPECT_EQ(losses[2].first, "generator");
}

TEST(TwoOptimizersStep, AnUpdateOfAllMovesBoth) {
  const Outcome outcome = train(usual_step);
  EXPECT_EQ(outcome.error, "none");
  EXPECT_THAT(outcome.two.critic->rates, ElementsAre(0.05, 0.025));
  EXPECT_THAT(outcome.two.generator->rates, ElementsAre(0.1, 0.1));
}

TEST(TwoOptimizersStep, WhatAnotherHasGatheredStays) {
  const auto gather_first = [](OwnStep& task, TrainingStep& step, Regressor& model) {
    backward(task, step, model, "generator", {"generator"});
    backward(task, step, model, "critic", {"critic"});
    step.update("critic");
    step.update("generator");
  };
  const auto alone = [](OwnStep& task, TrainingStep& step, Regressor& model) {
    backward(task, step, model, "generator", {"generator"});
    step.update("generator");
  };
  const TrainingConfig one_step{.max_steps = 1, .batch_size = 2};
  const Outcome gathered = train(gather_first, one_step);
  EXPECT_EQ(gathered.error, "none");
  EXPECT_EQ(gathered.two.generator->gradients, train(alone, one_step).two.generator->gradients);
  EXPECT_THAT(gathered.two.critic->rates, SizeIs(1));
}

TEST(TwoOptimizersStep, EndsWithoutGradients) {
  const Outcome left = train([](OwnStep& task, TrainingStep& step, Regressor& model) {
    backward(task, step, model, "both");
    step.update("critic");
  });
  EXPECT_THAT(left.error, HasSubstr("ended step 1 with gradients that optimizer 'generator' has "
                                    "not moved by"));
  const Outcome dropped = train([](OwnStep& task, TrainingStep& step, Regressor& model) {
    backward(task, step, model, "both");
    step.update("critic");
    step.skip();
  });
  EXPECT_EQ(dropped.error, "none");
  EXPECT_FALSE(dropped.results.front().is_skipped) << "the critic has moved";
  EXPECT_THAT(dropped.two.generator->rates, SizeIs(0));
}

TEST(TwoOptimizersStep, RefusesANameThatThereIsNot) {
  const Outcome update = train([](OwnStep& task, TrainingStep& step, Regressor& model) {
    backward(task, step, model, "both");
    step.update("critics");
  });
  EXPECT_THAT(update.error, HasSubstr("no optimizer has the name 'critics'; there are: generator, "
                                      "critic"));
  const Outcome into = train([](OwnStep& task, TrainingStep& step, Regressor& model) {
    backward(task, step, model, "both", {"judge"});
  });
  EXPECT_THAT(into.error, HasSubstr("'judge'"));
}

}  // namespace
}  // namespace phalanx::tiny
