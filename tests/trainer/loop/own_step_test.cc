// SPDX-License-Identifier: Apache-2.0
// A task that runs its own training step.

#include "tests/trainer/loop/own_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/loop/spy.h"
#include "trainer/base/stop_signal.h"

namespace phalanx::tiny {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const TrainerConfig kDouble{
    .name = "tiny", .exp_dir = "nowhere", .use_double_weight_precision = true};

const TrainingConfig kSixSteps{
    .max_steps = 6, .batch_size = 3, .gradient_accumulation_steps = 2, .clip_grad_norm = 0.5};

/// What there is to compare of a run.
struct Outcome {
  std::vector<double> weights;
  std::vector<NamedValues> losses;  ///< By step.
  std::vector<std::string> events;
  std::vector<double> rates;
  std::string error = "none";
};

Outcome train(std::shared_ptr<Regression> task, const TrainingConfig& training = kSixSteps) {
  spy = {};
  Parts parts;
  parts.task = std::move(task);
  Outcome outcome;
  try {
    make_spied(parts, training, kDouble)->train();
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  outcome.weights = weights_of(*parts.model);
  for (const StepResult& result : spy.results) outcome.losses.push_back(result.losses());
  outcome.events = spy.events;
  outcome.rates = parts.optimizer->rates;
  return outcome;
}

Outcome train(const OwnStep::Run& run, const TrainingConfig& training = kSixSteps) {
  return train(std::make_shared<OwnStep>(run), training);
}

TEST(OwnStep, WrittenOutIsTheUsualOneToTheBit) {
  const Outcome usual = train(std::make_shared<Regression>());
  const std::vector<std::pair<std::string, OwnStep::Run>> ways{
      {"the usual passes", usual_step},
      {"two forward passes before a backward pass", two_forwards},
      {"passes of its own", own_passes}};
  for (const auto& [way, run] : ways) {
    SCOPED_TRACE(way);
    const Outcome own = train(run);
    EXPECT_EQ(own.error, "none");
    EXPECT_EQ(own.weights, usual.weights);
    EXPECT_EQ(own.losses, usual.losses);
  }
  EXPECT_EQ(train(usual_step).events, usual.events) << "the hooks of mixins, in their order";
}

TEST(OwnStep, AddsTheGradientsOfSeveralLosses) {
  const auto run = [](OwnStep&, TrainingStep& step, Regressor&) {
    for (const auto& batch : step.micro_batches()) {
      const at::Tensor loss = step.forward(*batch).total();
      const double weight = step.weight_of(*batch);
      step.backward(loss, {.weight = 0.75 * weight, .name = "most", .retain_graph = true});
      step.backward(loss, {.weight = 0.25 * weight, .name = "rest"});
    }
    step.update();
  };
  const Outcome usual = train(std::make_shared<Regression>());
  const Outcome own = train(run);
  EXPECT_EQ(own.error, "none");
  ASSERT_THAT(own.weights, SizeIs(usual.weights.size()));
  for (size_t i = 0; i < own.weights.size(); ++i) {
    EXPECT_NEAR(own.weights[i], usual.weights[i], 1e-12);
  }
  ASSERT_THAT(own.losses.front(), SizeIs(3));
  EXPECT_NEAR(own.losses.front()[0].second, usual.losses.front()[0].second, 1e-12);
  EXPECT_EQ(own.losses.front()[1].first, "most");
  EXPECT_NEAR(own.losses.front()[2].second, 0.25 * usual.losses.front()[0].second, 1e-12);
}

TEST(OwnStep, MaySkipTheUpdate) {
  std::vector<std::vector<double>> weights;
  const auto run = [](OwnStep& task, TrainingStep& step, Regressor& model) {
    if (step.state().step != 2) return usual_step(task, step, model);
    const auto& batch = *step.micro_batches().front();
    step.backward(step.forward(batch), batch);
    step.skip();
  };
  spy = {};
  spy.at_step_end = [&](TrainerBase& trainer) { weights.push_back(weights_of(trainer.model())); };
  Parts parts;
  parts.task = std::make_shared<OwnStep>(run);
  const auto trainer = make_spied(parts, {.max_steps = 3, .batch_size = 3}, kDouble);
  trainer->train();
  ASSERT_THAT(weights, SizeIs(3));
  EXPECT_EQ(weights[1], weights[0]);
  EXPECT_NE(weights[2], weights[1]);
  EXPECT_TRUE(spy.results[1].is_skipped);
  EXPECT_FALSE(spy.results[2].is_skipped);
  EXPECT_EQ(trainer->state().samples, 9) << "its samples count";
  ASSERT_THAT(parts.optimizer->gradients, SizeIs(2));

  // What it had of gradients does not reach into the next step.
  Parts other;
  spy = {};
  spy.at_step_start = [&](TrainerBase& at) { set_weights(at.model(), weights[1]); };
  other.task = std::make_shared<Regression>();
  make_spied(other, {.max_steps = 3, .batch_size = 3}, kDouble)->train();
  EXPECT_EQ(parts.optimizer->gradients[1], other.optimizer->gradients[2]);
}

TEST(OwnStep, LogsMeansByWeight) {
  NamedValues logged;
  spy = {};
  spy.at_step_end = [&](TrainerBase& trainer) {
    logged = trainer.global_losses(spy.results.back());
  };
  Parts parts;
  parts.task = std::make_shared<OwnStep>([](OwnStep&, TrainingStep& step, Regressor&) {
    step.log("share", tensors::full({}, 1.0), 3);
    step.log("other", tensors::full({}, 7.0));
    step.log("share", tensors::full({}, 5.0), 1);
    step.run_as_usual();
  });
  make_spied(parts, {.max_steps = 1, .batch_size = 3}, kDouble)->train();
  ASSERT_THAT(logged, SizeIs(3));
  EXPECT_EQ(logged[0].first, "loss");
  EXPECT_EQ(logged[1], std::pair(std::string("share"), 2.0));
  EXPECT_EQ(logged[2], std::pair(std::string("other"), 7.0));
}

TEST(OwnStep, EndsByOneUpdateOrSkip) {
  EXPECT_THAT(train([](OwnStep&, TrainingStep&, Regressor&) {}).error,
              HasSubstr("neither updated nor skipped in step 1"));
  EXPECT_THAT(train([](OwnStep&, TrainingStep& step, Regressor&) {
                step.run_as_usual();
                step.skip();
              }).error,
              HasSubstr("one update or one skip"));
  EXPECT_THAT(train([](OwnStep&, TrainingStep& step, Regressor&) {
                step.skip();
                step.forward(*step.micro_batches().front());
              }).error,
              HasSubstr("a step that is updated or skipped"));
}

TEST(OwnStep, IsCheckedAsTheUsualOne) {
  const auto run = [](OwnStep&, TrainingStep& step, Regressor&) {
    const double factor = step.state().step == 3 ? std::numeric_limits<double>::infinity() : 1;
    for (const auto& batch : step.micro_batches()) {
      const at::Tensor loss = step.forward(*batch).total();
      step.backward(loss, {.weight = factor, .name = "critic"});
    }
    step.update();
  };
  const Outcome bad = train(run);
  EXPECT_THAT(bad.error, HasSubstr("the critic is inf"));
  EXPECT_THAT(bad.rates, SizeIs(2));
}

TEST(OwnStep, ALossWithoutAWeightAddsNothingToWhatIsLogged) {
  const auto run = [](OwnStep&, TrainingStep& step, Regressor& model) {
    const at::Tensor nothing = model.predict(tensors::full({1, 3}, 0.0, at::kDouble)).mul(0).sum();
    step.backward(nothing.add(std::numeric_limits<double>::quiet_NaN()),
                  {.weight = 0, .name = "masked"});
    step.run_as_usual();
  };
  const auto named = std::make_shared<OwnStep>(run, TaskOptions{.parts = {"error"}});
  const Outcome outcome = train(named, {.max_steps = 1, .batch_size = 3});
  EXPECT_EQ(outcome.error, "none");
  ASSERT_THAT(outcome.losses, SizeIs(1));
  EXPECT_EQ(outcome.losses.front().back(), std::pair(std::string("masked"), 0.0));
}

TEST(OwnStep, RefusesALossOfTheSumsName) {
  const auto run = [](OwnStep&, TrainingStep& step, Regressor& model) {
    const at::Tensor size = model.predict(tensors::full({1, 3}, 1.0, at::kDouble)).sum();
    step.backward(size, {.name = "size"});
    step.run_as_usual();
  };
  EXPECT_THAT(train(run).error, HasSubstr("the name of their sum"));
}

TEST(OwnStep, SaysWhereMemoryHasEnded) {
  const Outcome outcome = train([](OwnStep&, TrainingStep& step, Regressor&) {
    step.run([]() -> std::vector<at::Tensor> { throw std::bad_alloc(); });
  });
  EXPECT_THAT(outcome.error, HasSubstr("out of memory in step 1, forward"));
}

TEST(OwnStep, FinishesBeforeASignalEndsTheRun) {
  StopSignal::install();
  const Outcome outcome = train([](OwnStep& task, TrainingStep& step, Regressor& model) {
    if (step.state().step == 2) std::raise(SIGTERM);
    usual_step(task, step, model);
  });
  EXPECT_THAT(outcome.rates, SizeIs(2));
  StopSignal::install();
}

}  // namespace
}  // namespace phalanx::tiny
