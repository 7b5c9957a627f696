// SPDX-License-Identifier: Apache-2.0
// Whatever the micro-batches and the ranks that have them, a measure of the same samples is the
// same.

#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/trainer/metrics/fed.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/metrics/measures/accuracy.h"
#include "trainer/metrics/measures/auc.h"
#include "trainer/metrics/measures/class_counts.h"
#include "trainer/metrics/measures/means.h"
#include "trainer/metrics/measures/regression.h"
#include "trainer/metrics/metric_sums.h"
#include "trainer/tensors/random.h"

namespace phalanx::metrics {
namespace {

constexpr int64_t kSamples = 61;
constexpr int64_t kClasses = 4;
constexpr int kSplits = 20;

struct Case {
  std::string name;
  std::shared_ptr<const Metric> metric;
  MetricInputs inputs;  // of all samples
  bool is_exact;        // of whole numbers, which sums do not round
};

std::vector<Case> all_cases() {
  seed_everything(11);
  const at::Tensor scores = at::rand({kSamples, kClasses}, at::kDouble);
  const at::Tensor targets = at::randint(0, kClasses, {kSamples}, at::kLong);
  const at::Tensor two = targets.remainder(2);
  const at::Tensor equal_often = scores.select(1, 0).mul(10).floor();
  const at::Tensor values = scores.select(1, 1).add(100);
  const at::Tensor others = scores.select(1, 2).add(100);
  const at::Tensor weights = scores.select(1, 3);
  return {
      {"mean", mean(), {values, weights}, false},
      {"sum", sum(), {values}, false},
      {"count", count(), {values}, true},
      {"ratio", ratio(), {values, others}, false},
      {"perplexity", perplexity(), {scores.select(1, 0), weights}, false},
      {"accuracy", accuracy(), {scores, targets}, true},
      {"weighed accuracy", accuracy(), {scores, targets, weights}, false},
      {"top 2", accuracy({.top_k = 2}), {scores, targets}, true},
      {"precision", precision(), {scores.select(1, 0), two}, true},
      {"recall", recall(), {scores.select(1, 0), two}, true},
      {"macro F1", f1({.classes = kClasses, .average = Average::macro}), {scores, targets}, true},
      {"micro F1", f1({.classes = kClasses, .average = Average::micro}), {scores, targets}, true},
      {"confusion", confusion_matrix(kClasses), {scores, targets}, true},
      {"AUC", roc_auc(), {equal_often, two}, true},
      {"weighed AUC", roc_auc(), {equal_often, two, weights}, true},
      {"MSE", mean_squared_error(), {values, others}, false},
      {"RMSE", root_mean_squared_error(), {values, others, weights}, false},
      {"MAE", mean_absolute_error(), {values, others}, false},
      {"R2", r2(), {values, others, weights}, false},
  };
}

MetricInputs some_of(const MetricInputs& inputs, int64_t begin, int64_t end) {
  MetricInputs some;
  for (const at::Tensor& input : inputs) some.push_back(input.narrow(0, begin, end - begin));
  return some;
}

bool is_near(const NamedValues& values, const NamedValues& expected, bool is_exact) {
  if (values.size() != expected.size()) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    const double tolerance = is_exact ? 0 : 1e-12 * (1 + std::abs(expected[i].second));
    if (!(std::abs(values[i].second - expected[i].second) <= tolerance)) return false;
  }
  return true;
}

// Cuts the samples anywhere, deals the pieces to any ranks, and adds micro-batches that do not
// count. The same on all ranks.
void add_split(MetricSums& sums, const MetricInputs& inputs, const Ranks& ranks,
               std::mt19937& draw) {
  std::vector<int64_t> cuts{0, kSamples};
  for (unsigned cut = draw() % 9; cut > 0; --cut) {
    cuts.push_back(static_cast<int64_t>(draw() % kSamples));
  }
  std::ranges::sort(cuts);
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    const auto rank = static_cast<int64_t>(draw() % static_cast<unsigned>(ranks.world_size()));
    Counted batch(cuts[i + 1] - cuts[i]);
    if (rank != ranks.rank()) {
      batch.counts = false;
    }
    sums.add(batch, fed(some_of(inputs, cuts[i], cuts[i + 1])));
  }
}

void expect_equal_splits(const Ranks& ranks) {
  for (const Case& each : all_cases()) {
    MetricSums whole(set_of(each.metric), Phase::validate);
    whole.add(Counted(kSamples), fed(each.inputs));
    const NamedValues expected = whole.values(Ranks());
    std::mt19937 draw(3);
    for (int split = 0; split < kSplits; ++split) {
      MetricSums sums(set_of(each.metric), Phase::validate);
      add_split(sums, each.inputs, ranks, draw);
      const NamedValues values = sums.values(ranks);
      require(is_near(values, expected, each.is_exact),
              fmt::format("{}: {} and not {}", each.name, values.front().second,
                          expected.front().second));
    }
  }
}

TEST(MeasuresOnRanks, AreThoseOfOneMicroBatch) {
  for (const int64_t ranks : {1, 2, 3}) {
    EXPECT_EQ(in_ranks(ranks, [](World& world) { expect_equal_splits(world.ranks()); }).message, "")
        << "on " << ranks;
  }
}

}  // namespace
}  // namespace phalanx::metrics
