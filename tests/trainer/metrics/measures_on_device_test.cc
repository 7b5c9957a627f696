// SPDX-License-Identifier: Apache-2.0
// What a task feeds in a step is added where the model computes: the host waits for nothing.

#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/test_device/test_device.h"
#include "tests/trainer/metrics/fed.h"
#include "trainer/metrics/measures/accuracy.h"
#include "trainer/metrics/measures/auc.h"
#include "trainer/metrics/measures/class_counts.h"
#include "trainer/metrics/measures/means.h"
#include "trainer/metrics/measures/regression.h"
#include "trainer/metrics/metric_sums.h"
#include "trainer/ranks/ranks.h"
#include "trainer/tensors/random.h"

namespace phalanx::metrics {
namespace {

constexpr int64_t kSamples = 20;
constexpr int64_t kClasses = 3;

struct Case {
  std::string name;
  std::shared_ptr<const Metric> metric;
  MetricInputs inputs;
};

std::vector<Case> all_cases() {
  seed_everything(7);
  const at::Tensor scores = at::rand({kSamples, kClasses});
  const at::Tensor targets = at::randint(0, kClasses, {kSamples}, at::kLong);
  const at::Tensor weights = at::rand({kSamples});
  const at::Tensor two = targets.clamp(0, 1);
  const at::Tensor values = at::rand({kSamples});
  const ClassOptions options{.classes = kClasses, .average = Average::macro};
  return {
      {"mean", mean(), {values, weights}},
      {"sum", sum(), {values}},
      {"count", count(), {values}},
      {"ratio", ratio(), {values, weights}},
      {"perplexity", perplexity(), {values}},
      {"accuracy", accuracy(), {scores, targets}},
      {"top 2", accuracy({.top_k = 2}), {scores, targets, weights}},
      {"precision", precision(options), {scores, targets}},
      {"recall", recall(options), {scores, targets, weights}},
      {"f1", f1(), {values, two}},
      {"confusion", confusion_matrix(kClasses), {scores, targets}},
      {"auc", roc_auc(), {values, two}},
      {"auc of both", roc_auc(), {scores.narrow(1, 0, 2), two, weights}},
      {"mse", mean_squared_error(), {values, weights}},
      {"rmse", root_mean_squared_error(), {values, weights}},
      {"mae", mean_absolute_error(), {values, weights}},
      {"r2", r2(), {values, weights}},
  };
}

TEST(MeasuresOnDevice, AddWithoutAWait) {
  test_device::install();
  for (const auto& [name, metric, inputs] : all_cases()) {
    MetricSums expected(set_of(metric), Phase::train);
    MetricSums sums(set_of(metric), Phase::train);
    MetricInputs there;
    for (const at::Tensor& input : inputs) there.push_back(input.to(test_device::device()));
    const test_device::SyncCount syncs;
    for (int batch = 0; batch < 2; ++batch) {
      sums.add(Counted(), fed(there));
      expected.add(Counted(), fed(inputs));
    }
    EXPECT_EQ(test_device::describe_drains(syncs.all()), "") << name;
    EXPECT_EQ(syncs.all().size(), 0) << name;
    EXPECT_EQ(sums.values(Ranks()), expected.values(Ranks())) << name;
    EXPECT_GT(syncs.drains(), 0) << "that the count can fail: the values are read";
  }
}

TEST(MeasuresOnDevice, TakeNumbersAsWeightsWithoutAWait) {
  test_device::install();
  const at::Tensor value = at::rand({}).to(test_device::device());
  MetricSums sums(set_of(mean()), Phase::train);
  const test_device::SyncCount syncs;
  Loss loss{at::Tensor()};
  loss.metric("m", value, 3);
  sums.add(Counted(), loss.metrics());
  EXPECT_EQ(syncs.all().size(), 0);
}

}  // namespace
}  // namespace phalanx::metrics
