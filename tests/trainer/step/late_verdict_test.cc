// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/late_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "tests/tensors.h"

namespace phalanx {
namespace {

using ::testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor scalar(double value) { return tensors::full({}, value); }

LateVerdict::Step step_of(int64_t number, double loss, double norm) {
  return {
      .number = number, .loss_parts = {{"loss", scalar(loss)}}, .norms = {{.total = scalar(norm)}}};
}

// With a loss scale that this step has left at `scale`.
LateVerdict::Step scaled_step(int64_t number, double norm, bool overflow, double scale) {
  return {.number = number,
          .norms = {{.total = scalar(norm)}},
          .overflow = scalar(overflow ? 1 : 0),
          .scale = scalar(scale),
          .good_steps = scalar(5)};
}

TEST(LateVerdict, IsKnownOnceAndForTheStepThatCameLast) {
  LateVerdict verdict(/*stops=*/true, /*min_scale=*/0);
  EXPECT_FALSE(verdict.settle().has_value());
  EXPECT_EQ(verdict.judge(step_of(4, 2, 1)).item<float>(), 0);
  const auto judged = verdict.settle();
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->number, 4);
  EXPECT_TRUE(judged->is_norm_finite);
  EXPECT_THAT(judged->loss_problem, IsEmpty());
  EXPECT_FALSE(verdict.settle().has_value());
}

TEST(LateVerdict, ABadStepIsSkippedWithAllThatFollow) {
  for (const auto& [loss, norm, problem] : {std::tuple(kNan, 1.0, "the loss is nan"),
                                            {kInfinity, 1.0, "the loss is inf"},
                                            {1.0, kNan, ""}}) {
    LateVerdict verdict(true, 0);
    EXPECT_EQ(verdict.judge(step_of(1, 1, 1)).item<float>(), 0);
    verdict.settle();
    EXPECT_EQ(verdict.judge(step_of(2, loss, norm)).item<float>(), 1);
    const auto judged = verdict.settle();
    EXPECT_EQ(judged->number, 2);
    EXPECT_EQ(judged->loss_problem, problem);
    EXPECT_EQ(judged->is_norm_finite, norm == 1);
    EXPECT_EQ(verdict.judge(step_of(3, 1, 1)).item<float>(), 1);
  }
}

TEST(LateVerdict, AnOverflowSkipsItsStepAlone) {
  LateVerdict verdict(true, /*min_scale=*/1);
  EXPECT_EQ(verdict.judge(scaled_step(1, kNan, true, 32)).item<float>(), 1);
  const auto judged = verdict.settle();
  EXPECT_TRUE(judged->overflowed);
  EXPECT_EQ(judged->scale, 32);
  EXPECT_EQ(judged->good_steps, 5);
  EXPECT_EQ(verdict.judge(scaled_step(2, 1, false, 32)).item<float>(), 0);
  EXPECT_FALSE(verdict.settle()->overflowed);
}

TEST(LateVerdict, AnOverflowAtAScaleThatIsTooSmallSkipsAllThatFollow) {
  LateVerdict verdict(true, /*min_scale=*/1);
  EXPECT_EQ(verdict.judge(scaled_step(1, kNan, true, 0.5)).item<float>(), 1);
  verdict.settle();
  EXPECT_EQ(verdict.judge(scaled_step(2, 1, false, 0.5)).item<float>(), 1);
}

TEST(LateVerdict, ANormThatOverflowsWithoutItsGradientsStops) {
  LateVerdict verdict(true, 0);
  EXPECT_EQ(verdict.judge(scaled_step(1, kInfinity, false, 32)).item<float>(), 1);
  EXPECT_FALSE(verdict.settle()->is_norm_finite);
}

TEST(LateVerdict, OneNormOfSeveralThatIsNotFiniteStops) {
  for (const size_t bad : {0, 1}) {
    LateVerdict verdict(true, 0);
    LateVerdict::Step step = step_of(3, 1, 2);
    step.norms.push_back({.total = scalar(5)});
    step.norms[bad].total = scalar(kInfinity);
    EXPECT_EQ(verdict.judge(step).item<float>(), 1);
    EXPECT_FALSE(verdict.settle()->is_norm_finite);
  }
}

TEST(LateVerdict, WithoutStoppingOnlyOverflowsSkip) {
  LateVerdict verdict(/*stops=*/false, 1);
  EXPECT_EQ(verdict.judge(scaled_step(1, kNan, true, 0.5)).item<float>(), 1);
  verdict.settle();
  EXPECT_EQ(verdict.judge(scaled_step(2, kNan, false, 0.5)).item<float>(), 0);
  verdict.settle();
  LateVerdict::Step unmeasured = scaled_step(3, 0, false, 0.5);
  unmeasured.norms = {};
  EXPECT_EQ(verdict.judge(unmeasured).item<float>(), 0);
  EXPECT_TRUE(verdict.settle()->is_norm_finite);
}

}  // namespace
}  // namespace phalanx
