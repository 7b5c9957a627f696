// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/train_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/step/tiny_step.h"

namespace phalanx::tiny {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A step over the tiny model's ten samples, in micro-batches of so many.
struct Stepped : TinyStep {
  explicit Stepped(int64_t batch_size, TaskOptions options = {})
      : TinyStep({.task = std::make_shared<Regression>(std::move(options))}, batch_size),
        step(context, {}, *data) {
    set_weights(*parts.model, {0.5, -0.25, 1, 2});
    data->start_epoch(0, 0);
    step.ongoing().begin();
    while (auto batch = data->next()) {
      step.ongoing().result.tokens += batch->counted_tokens();
      step.ongoing().micro_batches.push_back(std::move(batch));
    }
  }

  // Runs the passes; returns the gradients.
  std::vector<double> gradients() {
    for (const auto& batch : step.ongoing().micro_batches) {
      step.backward(step.forward(*batch), *batch);
    }
    std::vector<double> values;
    for (const auto& parameter : step_parts.parameters()) {
      const at::Tensor flat = parameter.tensor.grad().flatten();
      for (int64_t i = 0; i < flat.numel(); ++i) values.push_back(flat[i].item<double>());
    }
    return values;
  }

  TrainStep step;
};

TEST(TrainStep, WeighsMicroBatchesByTheirTokens) {
  Stepped whole(10, {.parts = {"size", "error"}});
  Stepped split(3, {.parts = {"size", "error"}});
  ASSERT_EQ(split.step.ongoing().micro_batches.size(), 4u) << "the last one should be ragged";
  const auto expected = whole.gradients();
  const auto found = split.gradients();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-12 * std::max(1.0, std::abs(expected[i]))) << i;
  }
  const NamedValues losses = split.step.ongoing().result.losses();
  const NamedValues expected_losses = whole.step.ongoing().result.losses();
  ASSERT_EQ(losses.size(), 3u);
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_EQ(losses[i].first, expected_losses[i].first);
    EXPECT_NEAR(losses[i].second, expected_losses[i].second, 1e-12);
  }
}

TEST(TrainStep, AMicroBatchThatDoesNotCountAddsNothing) {
  Stepped step(5);
  const auto& batches = step.step.ongoing().micro_batches;
  batches.back()->counts = false;
  step.step.ongoing().result.tokens = batches.front()->tokens;
  const auto found = step.gradients();
  Stepped alone(5);
  alone.step.ongoing().micro_batches.pop_back();
  alone.step.ongoing().result.tokens = alone.step.ongoing().micro_batches.front()->tokens;
  EXPECT_EQ(found, alone.gradients());
  EXPECT_EQ(step.step.ongoing().result.losses(), alone.step.ongoing().result.losses());
}

TEST(TrainStep, ReducesGradientsWithTheLastMicroBatch) {
  Stepped step(4);
  step.gradients();
  EXPECT_THAT(step.engine->synchronized, ElementsAre(false, false, true));
}

TEST(TrainStep, BeginsEachStepAnew) {
  Stepped step(10);
  step.step.ongoing().is_norm_requested = true;
  step.gradients();
  step.step.update(100);
  EXPECT_GT(step.step.ongoing().result.lr, 0);
  EXPECT_EQ(step.parts.optimizer->rates.size(), 1u);
  step.step.ongoing().begin();
  EXPECT_TRUE(step.step.ongoing().is_running);
  EXPECT_FALSE(step.step.ongoing().is_norm_requested);
  EXPECT_FALSE(step.step.ongoing().result.grad_norm);
  EXPECT_TRUE(step.step.ongoing().result.loss_parts.empty());
}

TEST(TrainStep, CountsTheTimeOfItsPasses) {
  Stepped step(4);
  step.gradients();
  EXPECT_GT(step.time.forward_backward, 0);
  EXPECT_EQ(step.time.update, 0);
  step.step.update(100);
  EXPECT_GT(step.time.update, 0);
}

TEST(TrainStep, RefusesPartsThatChangeBetweenMicroBatches) {
  Stepped step(4, {.parts = {"error"}, .parts_change = true});
  EXPECT_THROW(step.gradients(), std::logic_error);
}

}  // namespace
}  // namespace phalanx::tiny
