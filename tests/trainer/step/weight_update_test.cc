// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/weight_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/loop/two_optimizers.h"
#include "tests/trainer/step/tiny_step.h"
#include "trainer/api/step_guard.h"
#include "trainer/precision/grad_scaler.h"

namespace phalanx::tiny {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// An update of the tiny model, whose four weights start at 0.
struct Updated : TinyStep {
  explicit Updated(const UpdateRules& rules = {}, Parts chosen = {},
                   std::vector<OptimizerPart> optimizers = {})
      : TinyStep(std::move(chosen), 4, std::move(optimizers)),
        search(context, *data),
        update(context, rules, search) {}

  // What an update by gradients of this value throws; empty: nothing.
  std::string error_of(double gradient) {
    set_gradients(gradient);
    try {
      update.update(ongoing, {.at = state.step, .end = 100});
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return {};
  }

  OngoingStep ongoing;
  NonfiniteSearch search;
  WeightUpdate update;
};

TEST(WeightUpdate, MovesByTheGradientsAtTheSchedulesRateAndDropsThem) {
  Parts parts;
  parts.schedule = std::make_shared<Schedule>([](int64_t step, int64_t total) {
    return static_cast<double>(step) / static_cast<double>(total);
  });
  Updated step({}, parts);
  EXPECT_EQ(step.error_of(3), "");
  const double lr = 0.1 * (7.0 / 100);
  EXPECT_EQ(step.ongoing.result.lr, lr);
  EXPECT_THAT(step.weights(), Each(-3 * lr));
  for (const auto& parameter : step.step_parts.parameters()) {
    EXPECT_FALSE(parameter.tensor.grad().defined()) << parameter.name;
  }
}

TEST(WeightUpdate, ClipsByTheNormThatItReports) {
  Updated step({.clip_grad_norm = 0.5});
  step.error_of(3);
  EXPECT_DOUBLE_EQ(step.ongoing.result.grad_norm->item<double>(), 6);
  for (const double gradient : step.parts.optimizer->gradients.front()) {
    EXPECT_NEAR(gradient, 0.25, 1e-6);
  }
}

TEST(WeightUpdate, ClipsEachElement) {
  Updated step({.clip_grad_value = 2});
  step.error_of(-3);
  EXPECT_THAT(step.parts.optimizer->gradients.front(), Each(-2));
  EXPECT_FALSE(step.ongoing.result.grad_norm) << "nobody asked for it";
}

TEST(WeightUpdate, MeasuresTheNormWhereSomebodyAsks) {
  Updated step({.stop_on_nonfinite_loss = false});
  step.ongoing.is_norm_requested = true;
  step.error_of(1);
  EXPECT_DOUBLE_EQ(step.ongoing.result.grad_norm->item<double>(), 2);
}

TEST(WeightUpdate, MovesNothingByGradientsThatAreNotFinite) {
  for (const double bad : {kNan, kInfinity}) {
    Updated step;
    EXPECT_THAT(step.error_of(bad), HasSubstr("the gradient of "));
    EXPECT_THAT(step.weights(), Each(0));
    EXPECT_THAT(step.parts.optimizer->rates, SizeIs(0));
  }
  Updated passes_on({.stop_on_nonfinite_loss = false});
  EXPECT_EQ(passes_on.error_of(kNan), "");
  EXPECT_TRUE(std::isnan(passes_on.weights().front()));
}

TEST(WeightUpdate, NamesTheLossThatIsNotFinite) {
  Updated step;
  step.ongoing.result.loss_parts = {{"size", tensors::full({}, 1.0)},
                                    {"error", tensors::full({}, kNan)}};
  EXPECT_THAT(step.error_of(kNan), HasSubstr("the error is nan"));
}

TEST(WeightUpdate, SkipsAndCountsAStepWhoseScaledGradientsOverflow) {
  Updated step;
  step.step_parts.use_mixed_precision(at::kHalf, LossScaling{.init_scale = 8});
  EXPECT_EQ(step.error_of(kInfinity), "");
  EXPECT_EQ(step.state.overflowed_steps, 1);
  EXPECT_EQ(step.state.loss_scale, 4);
  EXPECT_THAT(step.weights(), Each(0));

  ++step.state.step;
  EXPECT_EQ(step.error_of(4), "");
  EXPECT_EQ(step.state.overflowed_steps, 1);
  EXPECT_EQ(step.state.good_steps, 1);
  EXPECT_THAT(step.weights(), Each(-0.1)) << "the gradients, divided by the scale of 4";
}

TEST(WeightUpdate, EndsWhereNoLossScaleHelps) {
  Updated step;
  step.step_parts.use_mixed_precision(at::kHalf, LossScaling{.init_scale = 1e-6});
  EXPECT_THAT(step.error_of(kInfinity), HasSubstr("gradients are not finite although"));
  EXPECT_THAT(step.weights(), Each(0));
}

/// Gives the same verdict on all steps, and notes them.
struct Judge : StepGuard {
  explicit Judge(StepVerdict given, bool nonfinite = false)
      : verdict(given), is_for_nonfinite(nonfinite) {}

  bool takes_nonfinite() const override { return is_for_nonfinite; }
  StepJudgement judge(const StepToJudge& step) override {
    losses.push_back(*step.loss);
    norms.push_back(step.grad_norm);
    samples.push_back(step.samples());
    return {.verdict = verdict, .reason = "it is told to"};
  }

  StepVerdict verdict;
  bool is_for_nonfinite;
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<std::string> samples;
};

TEST(WeightUpdate, ShowsAGuardTheSumOfTheLossAndTheNormBeforeClipping) {
  Updated step({.clip_grad_norm = 0.5});
  Judge judge(StepVerdict::good);
  step.update.guard_by(judge);
  step.ongoing.result.loss_parts = {{"size", tensors::full({}, 1.5)},
                                    {"error", tensors::full({}, 2.0)}};
  step.ongoing.micro_batches.push_back(step.data->next());
  step.ongoing.micro_batches.back()->sample_numbers = {4, 2, 9};
  EXPECT_EQ(step.error_of(3), "");
  EXPECT_THAT(judge.losses, ElementsAre(3.5));
  EXPECT_THAT(judge.norms, ElementsAre(6));
  EXPECT_THAT(judge.samples, ElementsAre("samples 4, 2, 9"));
  EXPECT_FALSE(step.ongoing.result.is_skipped);
  EXPECT_THAT(step.weights(), Each(::testing::DoubleNear(-0.025, 1e-6)));
}

TEST(WeightUpdate, MovesNothingWhereAGuardSaysSo) {
  for (const StepVerdict verdict : {StepVerdict::skip, StepVerdict::undo}) {
    Updated step;
    Judge judge(verdict);
    step.update.guard_by(judge);
    EXPECT_EQ(step.error_of(3), "");
    EXPECT_THAT(step.weights(), Each(0));
    EXPECT_TRUE(step.ongoing.result.is_skipped);
    EXPECT_EQ(step.ongoing.is_undone, verdict == StepVerdict::undo);
    EXPECT_EQ(step.ongoing.result.guarded_by, "it is told to");
    for (const auto& parameter : step.step_parts.parameters()) {
      EXPECT_FALSE(parameter.tensor.grad().defined()) << parameter.name;
    }
  }
}

TEST(WeightUpdate, LeavesWhatIsNotFiniteToAGuardThatTakesIt) {
  Updated ends;
  Judge of_spikes(StepVerdict::skip);
  ends.update.guard_by(of_spikes);
  EXPECT_THAT(ends.error_of(kNan), HasSubstr("the gradient of "));
  EXPECT_THAT(of_spikes.norms, SizeIs(0));
  Updated goes_on;
  Judge judge(StepVerdict::skip, /*nonfinite=*/true);
  goes_on.update.guard_by(judge);
  EXPECT_EQ(goes_on.error_of(kNan), "");
  EXPECT_THAT(judge.norms, SizeIs(1));
  EXPECT_THAT(goes_on.weights(), Each(0));
}

TEST(WeightUpdate, LeavesAnOverflowToTheLossScale) {
  Updated step;
  Judge judge(StepVerdict::undo, /*nonfinite=*/true);
  step.update.guard_by(judge);
  step.step_parts.use_mixed_precision(at::kHalf, LossScaling{.init_scale = 8});
  EXPECT_EQ(step.error_of(kInfinity), "");
  EXPECT_EQ(step.state.overflowed_steps, 1);
  EXPECT_THAT(judge.norms, SizeIs(0)) << "no NaN of the model";
  EXPECT_FALSE(step.ongoing.is_undone);
}

TEST(WeightUpdate, HasNothingToSettleWhereTheHostJudgesAtOnce) {
  Updated step;
  step.error_of(1);
  EXPECT_NO_THROW(step.update.settle());
  EXPECT_EQ(step.state.step, 7);
}

/// The same by two optimizers: the weight is the generator's, the bias the critic's.
struct TwoUpdated : TwoOptimizers, Updated {
  explicit TwoUpdated(const UpdateRules& rules = {}) : Updated(rules, {}, make_parts()) {}

  const OptimizerPart& part(size_t i) const { return step_parts.optimizers()[i]; }
  at::Tensor& gradient(size_t i) { return part(i).parameters.front().tensor.mutable_grad(); }
  void update_one(size_t i) {
    update.update(ongoing, {.at = state.step, .end = 100}, std::span(&part(i), 1));
  }
};

TEST(WeightUpdate, OfOneOfTwoOptimizersLeavesTheOtherAsItIs) {
  TwoUpdated step({.clip_grad_norm = 0.5});
  step.set_gradients(3);
  step.update_one(1);
  EXPECT_EQ(step.critic->gradients.size(), 1u);
  EXPECT_NEAR(step.critic->gradients.front().front(), 0.5, 1e-6);
  EXPECT_FALSE(step.gradient(1).defined());
  EXPECT_TRUE(step.gradient(0).eq(3).all().item<bool>());
  EXPECT_THAT(step.generator->rates, SizeIs(0));
  ASSERT_THAT(step.ongoing.result.optimizers, SizeIs(1));
  EXPECT_EQ(step.ongoing.result.optimizers.front().name, "critic");
  EXPECT_DOUBLE_EQ(step.ongoing.result.optimizers.front().grad_norm->item<double>(), 3);
}

TEST(WeightUpdate, MovesNoneOfTwoWhereAGradientOfOneIsNotFinite) {
  TwoUpdated step;
  step.set_gradients(1);
  step.gradient(1).fill_(kNan);
  EXPECT_THROW(step.update.update(step.ongoing, {.at = step.state.step, .end = 100}),
               std::runtime_error);
  EXPECT_THAT(step.weights(), Each(0));
}

TEST(WeightUpdate, GradientsThatStayFollowTheLossScale) {
  TwoUpdated step;
  step.step_parts.use_mixed_precision(at::kHalf, LossScaling{.init_scale = 8});
  step.set_gradients(16);
  step.gradient(1).fill_(kInfinity);
  step.update_one(1);
  EXPECT_EQ(step.state.loss_scale, 4);
  EXPECT_TRUE(step.gradient(0).eq(8).all().item<bool>());
  step.update_one(0);
  EXPECT_THAT(step.generator->gradients.front(), Each(2)) << "as before the scale has moved";
}

TEST(WeightUpdate, CountsAStepOnceWhoseUpdatesAllOverflow) {
  TwoUpdated step;
  step.step_parts.use_mixed_precision(at::kHalf, LossScaling{.init_scale = 8});
  for (const size_t i : {1, 0, 1}) {
    step.set_gradients(kInfinity);
    step.update_one(i);
  }
  EXPECT_EQ(step.state.overflowed_steps, 1);
  ++step.state.step;
  step.set_gradients(kInfinity);
  step.update_one(0);
  EXPECT_EQ(step.state.overflowed_steps, 2);
  step.update_one(1);
  EXPECT_EQ(step.state.overflowed_steps, 2);
}

TEST(WeightUpdate, CountsNoStepThatHasMovedAWeight) {
  for (const size_t overflowing : {0, 1}) {
    TwoUpdated step;
    step.step_parts.use_mixed_precision(at::kHalf, LossScaling{.init_scale = 8});
    step.set_gradients(16);
    step.gradient(overflowing).fill_(kInfinity);
    step.update_one(1);
    step.update_one(0);
    EXPECT_EQ(step.state.overflowed_steps, 0) << overflowing;
    EXPECT_EQ(step.state.loss_scale, 4);
  }
}

/// Skips the updates of some optimizers; "" is an update of all.
struct JudgeOf : StepGuard {
  explicit JudgeOf(std::vector<std::string> bad) : skipped(std::move(bad)) {}

  bool takes_nonfinite() const override { return false; }
  StepJudgement judge(const StepToJudge& step) override {
    if (std::ranges::find(skipped, step.optimizer) == skipped.end()) return {};
    return {.verdict = StepVerdict::skip, .reason = "it is told to"};
  }

  std::vector<std::string> skipped;
};

TEST(WeightUpdate, SaysWhichUpdateAGuardHasSkipped) {
  TwoUpdated step;
  JudgeOf judge({"critic"});
  step.update.guard_by(judge);
  step.set_gradients(1);
  step.update_one(1);
  EXPECT_EQ(step.ongoing.result.guarded_by, "update of critic: it is told to");
  EXPECT_TRUE(step.ongoing.result.is_skipped) << "nothing has moved so far";
  step.update_one(0);
  EXPECT_FALSE(step.ongoing.result.is_skipped);
  EXPECT_EQ(step.ongoing.result.guarded_by, "update of critic: it is told to");
}

TEST(WeightUpdate, IsOfASkippedStepWhereEachUpdateIsSkipped) {
  TwoUpdated step;
  JudgeOf judge({"critic", "generator"});
  step.update.guard_by(judge);
  step.set_gradients(1);
  step.update_one(1);
  step.update_one(0);
  EXPECT_TRUE(step.ongoing.result.is_skipped);
  EXPECT_EQ(step.ongoing.result.guarded_by,
            "update of critic: it is told to; update of generator: it is told to");
  EXPECT_THAT(step.weights(), Each(0));
}

TEST(WeightUpdate, IsOfAStepThatHasMovedWhereTheUpdateOfAllIsSkippedAlone) {
  TwoUpdated step;
  JudgeOf judge({""});
  step.update.guard_by(judge);
  step.set_gradients(1);
  step.update_one(0);
  step.update.update(step.ongoing, {.at = step.state.step, .end = 100});
  EXPECT_FALSE(step.ongoing.result.is_skipped) << "the generator has moved";
  EXPECT_EQ(step.ongoing.result.guarded_by, "last update: it is told to");
  EXPECT_THAT(step.critic->rates, SizeIs(0));
}

}  // namespace
}  // namespace phalanx::tiny
