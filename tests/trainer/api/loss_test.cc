// SPDX-License-Identifier: Apache-2.0
// Losses, what a step reports of them, and gradient clipping.

#include "trainer/api/loss.h"

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/tensors.h"
#include "trainer/api/clip.h"
#include "trainer/api/step_result.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

at::Tensor number(double value) { return tensors::full({}, value, at::kDouble); }

TEST(Loss, ATensorIsALoss) {
  const Loss loss = number(2.5);
  EXPECT_EQ(loss.total().item<double>(), 2.5);
  ASSERT_EQ(loss.parts().size(), 1u);
  EXPECT_EQ(loss.parts().front().first, "loss");
}

TEST(Loss, PartsAreSummedInTheirOrder) {
  const Loss loss(Loss::Parts{{"policy", number(1)}, {"value", number(0.5)}, {"size", number(4)}});
  EXPECT_EQ(loss.total().item<double>(), 5.5);
}

TEST(Loss, NamesMustTellPartsApart) {
  EXPECT_THROW(Loss(Loss::Parts{}), std::invalid_argument);
  EXPECT_THROW(Loss(Loss::Parts{{"loss", number(1)}, {"size", number(1)}}), std::invalid_argument);
  EXPECT_THROW(Loss(Loss::Parts{{"size", number(1)}, {"size", number(1)}}), std::invalid_argument);
  EXPECT_NO_THROW(Loss(Loss::Parts{{"loss", number(1)}}));
}

TEST(StepResult, NamesTheSumAndThenTheParts) {
  StepResult result;
  result.loss_parts = {{"policy", number(1)}, {"value", number(0.5)}};
  EXPECT_THAT(result.losses(),
              ElementsAre(Pair("loss", 1.5), Pair("policy", 1), Pair("value", 0.5)));
}

TEST(StepResult, OnePartIsTheLossWhateverItsName) {
  StepResult result;
  result.loss_parts = {{"policy", number(1)}};
  EXPECT_THAT(result.losses(), ElementsAre(Pair("loss", 1)));
}

std::vector<at::Tensor> gradients() {
  return {at::tensor({3.0, -4.0}, at::kDouble), tensors::full({1, 1}, 12.0, at::kDouble)};
}

TEST(Clip, TheNormIsThatOfAllGradientsTogether) {
  EXPECT_DOUBLE_EQ(gradient_norm(gradients()).item<double>(), 13);
  EXPECT_DOUBLE_EQ(gradient_norm({tensors::zeros({4})}).item<double>(), 0);
}

// As where a module that is not sharded keeps its gradients in single precision.
TEST(Clip, TheNormOfMixedPrecisionsIsThatOfTheWidest) {
  const std::vector<at::Tensor> mixed{tensors::full({4}, 60000.0, at::kHalf),
                                      tensors::full({9}, 1.0F)};
  const at::Tensor norm = gradient_norm(mixed);
  EXPECT_EQ(norm.scalar_type(), at::kFloat);
  EXPECT_FLOAT_EQ(norm.item<float>(), std::sqrt(4 * 60000.0F * 60000.0F + 9));
  EXPECT_EQ(gradient_norm({tensors::full({4}, 60000.0, at::kHalf)}).item<float>(), 120000.0F);
}

TEST(Clip, ByNormScalesAllByOneFactor) {
  auto clipped = gradients();
  clip_gradients_by_norm(clipped, 6.5, gradient_norm(clipped));
  const double factor = 6.5 / (13 + 1e-6);
  EXPECT_DOUBLE_EQ(clipped[0][0].item<double>(), 3 * factor);
  EXPECT_DOUBLE_EQ(clipped[0][1].item<double>(), -4 * factor);
  EXPECT_DOUBLE_EQ(clipped[1][0][0].item<double>(), 12 * factor);
  EXPECT_LE(gradient_norm(clipped).item<double>(), 6.5);
}

TEST(Loss, FeedsMetricsBesideItsParts) {
  at::Tensor value = number(2);
  value.requires_grad_(true);
  Loss loss = value.mul(3);
  loss.metric("accuracy", {loss.total(), value});
  loss.metric("size", 4, 0.5);
  EXPECT_EQ(loss.parts().size(), 1);
  ASSERT_EQ(loss.metrics().size(), 2);
  EXPECT_FALSE(loss.metrics()[0].inputs[0].requires_grad());
  EXPECT_FALSE(loss.metrics()[0].inputs[1].requires_grad());
  EXPECT_EQ(loss.metrics()[1].inputs[0].item<double>(), 4);
  EXPECT_EQ(loss.metrics()[1].inputs[1].item<double>(), 0.5);

  const Loss other = std::move(loss).with_values({number(5)});
  EXPECT_EQ(other.total().item<double>(), 5);
  EXPECT_EQ(other.metrics().size(), 2) << "an engine that replaces values loses none";
  Loss taken = other;
  EXPECT_EQ(taken.take_metrics().size(), 2);
  EXPECT_TRUE(taken.metrics().empty());
}

TEST(Clip, ByNormLeavesASmallerOneAlone) {
  auto clipped = gradients();
  clip_gradients_by_norm(clipped, 13.1, gradient_norm(clipped));
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(clipped[i].equal(gradients()[i]));
}

TEST(Clip, ByNormOfZeroStaysZero) {
  const std::vector<at::Tensor> zero{tensors::zeros({3})};
  clip_gradients_by_norm(zero, 1, gradient_norm(zero));
  EXPECT_TRUE(zero[0].equal(tensors::zeros({3})));
}

TEST(Clip, ByValueClampsEachElement) {
  auto clipped = gradients();
  clip_gradients_by_value(clipped, 3.5);
  EXPECT_TRUE(clipped[0].equal(at::tensor({3.0, -3.5}, at::kDouble)));
  EXPECT_TRUE(clipped[1].equal(tensors::full({1, 1}, 3.5, at::kDouble)));
}

}  // namespace
}  // namespace phalanx
