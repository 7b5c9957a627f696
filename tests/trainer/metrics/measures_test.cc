// SPDX-License-Identifier: Apache-2.0
// Each measure of a few samples that can be counted by hand, and the inputs that are refused.
// measures_peer_test compares random ones with numpy.

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/trainer/metrics/fed.h"
#include "trainer/metrics/measures/accuracy.h"
#include "trainer/metrics/measures/auc.h"
#include "trainer/metrics/measures/class_counts.h"
#include "trainer/metrics/measures/means.h"
#include "trainer/metrics/measures/regression.h"
#include "trainer/metrics/metric_sums.h"
#include "trainer/ranks/ranks.h"

namespace phalanx::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

at::Tensor numbers(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }
at::Tensor classes(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

// A metric over the micro-batches of one rank.
NamedValues values_of(const std::shared_ptr<const Metric>& metric,
                      const std::vector<MetricInputs>& batches) {
  MetricSums sums(set_of(metric), Phase::validate);
  for (const MetricInputs& inputs : batches) sums.add(Counted(), fed(inputs));
  return sums.values(Ranks());
}

double value_of(const std::shared_ptr<const Metric>& metric,
                const std::vector<MetricInputs>& batches) {
  return values_of(metric, batches).at(0).second;
}

std::string problem_of(const std::shared_ptr<const Metric>& metric, const MetricInputs& inputs) {
  try {
    value_of(metric, {inputs});
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "none";
}

TEST(Means, WeighTheirValues) {
  EXPECT_EQ(value_of(mean(), {{numbers({1, 2})}, {numbers({6})}}), 3);
  EXPECT_EQ(value_of(mean(), {{numbers({1, 2}), numbers({3, 1})}, {numbers({6}), numbers({4})}}),
            (3 + 2 + 24) / 8.0);
  EXPECT_EQ(value_of(mean(), {{numbers({1, kNaN}), numbers({1, 0})}}), 1);
  EXPECT_TRUE(std::isnan(value_of(mean(), {{numbers({1}), numbers({0})}})));
  EXPECT_THAT(problem_of(mean(), {numbers({1, 2}), numbers({1})}), HasSubstr("2 and 1 elements"));
  EXPECT_THAT(problem_of(mean(), {}), HasSubstr("values and perhaps weights, and is fed 0"));
}

TEST(Means, OfNumbersAreFedWithTheirWeight) {
  Loss loss{at::Tensor()};
  loss.metric("m", 2, 3);
  loss.metric("m", at::full({}, 10.0F), 1);
  MetricSums sums(set_of(mean()), Phase::train);
  sums.add(Counted(), loss.metrics());
  EXPECT_THAT(sums.values(Ranks()), ElementsAre(Pair("m", 4)));
}

TEST(Sums, AddAndCount) {
  const std::vector<MetricInputs> batches{{numbers({1, 0, 1}).to(at::kBool)},
                                          {numbers({1}).to(at::kBool)}};
  EXPECT_EQ(value_of(sum(), batches), 3);
  EXPECT_EQ(value_of(count(), batches), 4);
  EXPECT_EQ(value_of(ratio(), {{numbers({1, 2}), numbers({4})}, {numbers({3}), numbers({4, 4})}}),
            0.5);
}

TEST(Perplexity, IsOfTheMeanLoss) {
  EXPECT_DOUBLE_EQ(
      value_of(perplexity(), {{numbers({1}), numbers({3})}, {numbers({2}), numbers({1})}}),
      std::exp(1.25));
}

// The scores of two samples.
const at::Tensor kScores = numbers({0, 1, 2, 5, 0, 4}).reshape({2, 3});

TEST(Accuracy, TakesScoresClassesOrProbabilities) {
  EXPECT_EQ(value_of(accuracy(), {{kScores, classes({2, 2})}}), 0.5);
  EXPECT_EQ(value_of(accuracy(), {{classes({1, 2, 0, 0}), classes({1, 2, 0, 1})}}), 0.75);
  EXPECT_EQ(value_of(accuracy(), {{numbers({0.4, 0.6}), classes({1, 1})}}), 0.5);
  EXPECT_EQ(value_of(accuracy({.threshold = 0}), {{numbers({0.4, -0.6}), classes({1, 0})}}), 1);
  // A sequence of tokens a row, the classes last.
  EXPECT_EQ(value_of(accuracy(), {{kScores.unsqueeze(0), classes({2, 0}).unsqueeze(0)}}), 1);
}

TEST(Accuracy, LeavesOutTargetsBelowZeroAndWeighsTheRest) {
  EXPECT_EQ(value_of(accuracy(), {{kScores, classes({-100, 0})}}), 1);
  EXPECT_EQ(value_of(accuracy(), {{kScores, classes({2, 1}), numbers({3, 1})}}), 0.75);
  EXPECT_TRUE(std::isnan(value_of(accuracy(), {{kScores, classes({-1, -1})}})));
}

TEST(Accuracy, CountsTheHighestK) {
  EXPECT_EQ(value_of(accuracy({.top_k = 2}), {{kScores, classes({1, 1})}}), 0.5);
  EXPECT_EQ(value_of(accuracy({.top_k = 2}), {{kScores, classes({1, 2})}}), 1);
  EXPECT_EQ(value_of(accuracy({.top_k = 9}), {{kScores, classes({0, 1})}}), 1);
  EXPECT_THAT(problem_of(accuracy({.top_k = 2}), {classes({1}), classes({1})}),
              HasSubstr("the scores of all classes"));
  EXPECT_THROW(accuracy({.top_k = 0}), std::invalid_argument);
}

TEST(Accuracy, RefusesOtherShapes) {
  EXPECT_THAT(problem_of(accuracy(), {kScores, classes({1, 2, 0})}),
              HasSubstr("2 predictions and 3 targets"));
  EXPECT_THAT(problem_of(accuracy(), {kScores}), HasSubstr("is fed 1 tensors"));
  EXPECT_THAT(problem_of(accuracy(), {kScores, at::Tensor()}), HasSubstr("one is undefined"));
}

// Class 1 is predicted 3 times, rightly twice, and is the target 4 times.
const MetricInputs kTwoClasses{classes({1, 1, 1, 0, 0, 0}), classes({1, 1, 0, 1, 1, 0})};

TEST(ClassScores, AreOfTheSecondOfTwoClasses) {
  EXPECT_EQ(value_of(precision(), {kTwoClasses}), 2.0 / 3);
  EXPECT_EQ(value_of(recall(), {kTwoClasses}), 0.5);
  EXPECT_EQ(value_of(f1(), {kTwoClasses}), 4.0 / 7);
  const MetricInputs none{classes({0, 0}), classes({0, 0})};
  EXPECT_EQ(value_of(precision(), {none}), 0);
  EXPECT_EQ(value_of(recall(), {none}), 0);
  EXPECT_EQ(value_of(f1(), {none}), 0);
}

TEST(ClassScores, AreMeansOfClassesOrOfSamples) {
  // Class 3 does not occur; class 2 is predicted once, wrongly.
  const MetricInputs inputs{classes({0, 0, 1, 2}), classes({0, 1, 1, 1})};
  EXPECT_EQ(value_of(precision({.classes = 4, .average = Average::macro}), {inputs}), 0.5);
  EXPECT_DOUBLE_EQ(value_of(recall({.classes = 4, .average = Average::macro}), {inputs}),
                   (1 + 1.0 / 3) / 3);
  EXPECT_DOUBLE_EQ(value_of(f1({.classes = 4, .average = Average::macro}), {inputs}),
                   (2.0 / 3 + 0.5) / 3);
  EXPECT_EQ(value_of(f1({.classes = 4, .average = Average::micro}), {inputs}), 0.5);
}

TEST(ClassScores, RefuseClassesThatAreNotDeclared) {
  const auto two = f1({.classes = 2, .average = Average::macro});
  for (const MetricInputs& inputs :
       {MetricInputs{classes({2}), classes({1})}, MetricInputs{classes({1}), classes({2})},
        MetricInputs{classes({-1}), classes({1})}}) {
    EXPECT_THAT(problem_of(two, inputs), HasSubstr("the classes 0 to 1, and fed others"));
    EXPECT_THAT(problem_of(confusion_matrix(2), inputs), HasSubstr("and fed others"));
  }
  EXPECT_EQ(value_of(two, {{classes({1, 2}), classes({1, -100})}}), 1) << "one does not count";
  EXPECT_THROW(f1({.classes = 3}), std::invalid_argument);
  EXPECT_THROW(f1({.classes = 1, .average = Average::macro}), std::invalid_argument);
}

TEST(ConfusionMatrix, CountsTargetsByTheirPredictions) {
  EXPECT_THAT(values_of(confusion_matrix(2), {kTwoClasses, kTwoClasses}),
              ElementsAre(Pair("m_0_0", 2), Pair("m_0_1", 2), Pair("m_1_0", 4), Pair("m_1_1", 4)));
}

TEST(RocAuc, CountsPairsAndHalvesEqualScores) {
  // Two of 4 pairs are in order, and one is equal.
  const at::Tensor scores = numbers({0.1, 0.5, 0.5, 0.4});
  const at::Tensor targets = classes({0, 0, 1, 1});
  EXPECT_EQ(value_of(roc_auc(), {{scores, targets}}), 2.5 / 4);
  EXPECT_EQ(value_of(roc_auc(), {{scores.narrow(0, 0, 1), targets.narrow(0, 0, 1)},
                                 {scores.narrow(0, 1, 3), targets.narrow(0, 1, 3)}}),
            2.5 / 4);
  EXPECT_EQ(value_of(roc_auc(), {{scores, targets, numbers({1, 1, 1, 0})}}), 0.75);
  EXPECT_EQ(value_of(roc_auc(), {{scores, classes({0, 0, 1, -100})}}), 0.75);
}

TEST(RocAuc, TakesTheScoresOfBothClasses) {
  const at::Tensor scores = numbers({3, 1, 0, 1, 5, 5}).reshape({3, 2});
  EXPECT_EQ(value_of(roc_auc(), {{scores, classes({0, 1, 0})}}), 1);
  EXPECT_THAT(problem_of(roc_auc(), {kScores, classes({0, 1})}), HasSubstr("of two classes"));
  EXPECT_THAT(problem_of(roc_auc(), {numbers({1}), classes({2})}), HasSubstr("and fed others"));
}

TEST(RocAuc, IsNaNWithoutBothClasses) {
  EXPECT_TRUE(std::isnan(value_of(roc_auc(), {{numbers({1, 2}), classes({1, 1})}})));
  EXPECT_TRUE(std::isnan(value_of(roc_auc(), {{numbers({1, kNaN}), classes({1, 0})}})));
  EXPECT_TRUE(std::isnan(value_of(roc_auc(), {{at::empty({0}), at::empty({0}, at::kLong)}})));
}

TEST(Regression, MeansItsErrors) {
  const MetricInputs inputs{numbers({1, 2, 3}), numbers({1, 4, 0})};
  EXPECT_DOUBLE_EQ(value_of(mean_squared_error(), {inputs}), 13.0 / 3);
  EXPECT_DOUBLE_EQ(value_of(root_mean_squared_error(), {inputs}), std::sqrt(13.0 / 3));
  EXPECT_DOUBLE_EQ(value_of(mean_absolute_error(), {inputs}), 5.0 / 3);
  EXPECT_DOUBLE_EQ(value_of(mean_squared_error(), {{inputs[0], inputs[1], numbers({1, 2, 0})}}),
                   8.0 / 3);
}

TEST(R2, IsOneLessTheShareOfErrors) {
  const std::vector<MetricInputs> batches{{numbers({1, 2}), numbers({1, 4})},
                                          {numbers({3}), numbers({1})}};
  EXPECT_DOUBLE_EQ(value_of(r2(), batches), 1 - 8.0 / 6);
  EXPECT_EQ(value_of(r2(), {{numbers({0.1, 0.1}), numbers({0.1, 0.1})},
                            {numbers({0.1}), numbers({0.1})}}),
            1);
  EXPECT_EQ(
      value_of(r2(), {{numbers({1, 2}), numbers({0.1, 0.1})}, {numbers({0.1}), numbers({0.1})}}),
      0);
  EXPECT_TRUE(std::isnan(value_of(r2(), {{numbers({1}), numbers({1})}})));
}

// By sums of squares no digit of it would be right.
TEST(R2, IsExactFarFromZero) {
  constexpr double kFar = 1e9;
  EXPECT_NEAR(value_of(r2(), {{numbers({kFar + 1, kFar + 2}), numbers({kFar + 1, kFar + 4})},
                              {numbers({kFar + 3}), numbers({kFar + 1})}}),
              1 - 8.0 / 6, 1e-9);
}

}  // namespace
}  // namespace phalanx::metrics
