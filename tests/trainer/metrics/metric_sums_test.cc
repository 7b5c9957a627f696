// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/metric_sums.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tests/trainer/metrics/fed.h"
#include "tests/trainer/parallel/in_ranks.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

/// The sum of the first input, and the largest and the number of the rows that the second has.
class SumAndRows : public Metric {
 public:
  std::vector<std::string> names() const override { return {"", "largest", "rows"}; }
  MetricPart measure(const MetricInputs& inputs) const override {
    if (inputs.size() != 2) throw std::invalid_argument("two, please");
    return {.sums = inputs[0], .rows = inputs[1]};
  }
  std::vector<double> values(const MetricTotals& totals) const override {
    double sum = 0;
    for (const double one : totals.sums) sum += one;
    if (!totals.rows.defined()) return {sum, -1, 0};
    return {sum, totals.rows.max().item<double>(), static_cast<double>(totals.rows.size(0))};
  }
};

MetricSet of_both(MeasuredIn where = MeasuredIn::both) {
  return set_of(std::make_shared<SumAndRows>(), where);
}

std::vector<FedMetric> fed_of(double sum, int64_t rows, double value) {
  return fed({at::full({1}, sum, at::kDouble), at::full({rows, 2}, value, at::kDouble)});
}

std::string problem_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "none";
}

TEST(MetricSums, AddMicroBatches) {
  MetricSums sums(of_both(), Phase::train);
  sums.add(Counted(), fed_of(1, 2, 5));
  sums.add(Counted(), fed_of(2.5, 3, 4));
  const auto values = sums.values(Ranks());
  EXPECT_THAT(values, ElementsAre(Pair("m", 3.5), Pair("m_largest", 5), Pair("m_rows", 5)));
  EXPECT_EQ(sums.values(Ranks()), values) << "asking changes nothing";
  sums.clear();
  sums.add(Counted(), fed_of(1, 1, -1));
  EXPECT_THAT(sums.values(Ranks()),
              ElementsAre(Pair("m", 1), Pair("m_largest", -1), Pair("m_rows", 1)));
}

TEST(MetricSums, AddNothingOfMicroBatchesThatDoNotCount) {
  MetricSums sums(of_both(), Phase::train);
  Counted padding;
  padding.counts = false;
  sums.add(padding, fed_of(1, 1, 1));
  sums.add(Counted(0), fed_of(1, 1, 1));
  EXPECT_THAT(sums.values(Ranks()), IsEmpty());
}

TEST(MetricSums, AreOfAPhase) {
  MetricSums steps(of_both(MeasuredIn::validation), Phase::train);
  EXPECT_TRUE(steps.empty());
  steps.add(Counted(), fed_of(1, 1, 1));
  EXPECT_THAT(steps.values(Ranks()), IsEmpty());
  MetricSums validation(of_both(MeasuredIn::validation), Phase::validate);
  validation.add(Counted(), fed_of(1, 1, 1));
  EXPECT_EQ(validation.values(Ranks()).size(), 3);
}

TEST(MetricSums, AreNaNInAValidationThatFedNothing) {
  const auto values = MetricSums(of_both(), Phase::validate).values(Ranks());
  ASSERT_EQ(values.size(), 3);
  EXPECT_EQ(values[1].first, "m_largest");
  for (const auto& [name, value] : values) EXPECT_TRUE(std::isnan(value)) << name;
}

TEST(MetricSums, KeepNothingOfWhatTheyAreFed) {
  MetricSums sums(of_both(), Phase::train);
  const at::Tensor sum = at::full({1}, 1.0, at::kDouble);
  const at::Tensor rows = at::full({1, 2}, 1.0, at::kDouble);
  sums.add(Counted(), fed({sum, rows}));
  sum.fill_(7);
  rows.fill_(7);
  EXPECT_THAT(sums.values(Ranks()),
              ElementsAre(Pair("m", 1), Pair("m_largest", 1), Pair("m_rows", 1)));
}

TEST(MetricSums, AddInDoublePrecision) {
  MetricSums sums(of_both(), Phase::train);
  const at::Tensor none = at::empty({0, 2});
  sums.add(Counted(), fed({at::full({1}, 16777216.0F), none}));
  for (int i = 0; i < 3; ++i) sums.add(Counted(), fed({at::full({1}, 1.0F), none}));
  EXPECT_EQ(sums.values(Ranks()).front().second, 16777219);
}

TEST(MetricSums, NameAMetricThatIsNotDeclared) {
  MetricSums sums(of_both(), Phase::train);
  std::vector<FedMetric> wrong = fed_of(1, 1, 1);
  wrong.front().name = "n";
  EXPECT_THAT(problem_of([&] { sums.add(Counted(), wrong); }),
              HasSubstr("feeds a metric 'n', and declares m"));
  MetricSums none(MetricSet(), Phase::train);
  EXPECT_THAT(problem_of([&] { none.add(Counted(), wrong); }), HasSubstr("declares none"));
}

TEST(MetricSums, NameTheMetricThatTakesOtherInputs) {
  MetricSums sums(of_both(), Phase::train);
  EXPECT_EQ(problem_of([&] { sums.add(Counted(), fed({})); }), "the metric 'm': two, please");
  sums.add(Counted(), fed_of(1, 1, 1));
  const auto of_sizes = [](int64_t n, int64_t columns) {
    return fed({at::full({n}, 1.0), at::full({1, columns}, 1.0)});
  };
  EXPECT_THAT(problem_of([&] { sums.add(Counted(), of_sizes(2, 2)); }), HasSubstr("2 of another"));
  EXPECT_THAT(problem_of([&] { sums.add(Counted(), of_sizes(1, 3)); }), HasSubstr("columns"));
}

TEST(MetricSums, StandBehindOtherValues) {
  NamedValues values{{"loss", 1}};
  append_metrics(values, {{"f1", 2}});
  EXPECT_THAT(values, ElementsAre(Pair("loss", 1), Pair("f1", 2)));
  EXPECT_THAT(problem_of([&] {
                append_metrics(values, {{"f1", 3}});
              }),
              HasSubstr("another value of that name"));
}

// Rank 0 has nothing that counts, and the others unlike numbers of micro-batches and rows.
void add_on_ranks(const Ranks& ranks) {
  MetricSums sums(of_both(), Phase::train);
  Counted padding;
  padding.counts = false;
  sums.add(padding, fed_of(100, 1, 100));
  for (int64_t i = 0; i < ranks.rank(); ++i) {
    sums.add(Counted(), fed_of(1, ranks.rank(), static_cast<double>(10 + i)));
  }
  const NamedValues values = sums.values(ranks);
  require(values == NamedValues{{"m", 3}, {"m_largest", 11}, {"m_rows", 5}}, "the sums");
}

TEST(MetricSumsOnRanks, AddWhatAllHave) {
  EXPECT_EQ(in_ranks(3, [](World& world) { add_on_ranks(world.ranks()); }).message, "");
}

TEST(MetricSumsOnRanks, AreLeftOutOfAStepWhereNoneWasFed) {
  EXPECT_EQ(in_ranks(2,
                     [](World& world) {
                       const MetricSums sums(of_both(), Phase::train);
                       require(sums.values(world.ranks()).empty(), "none");
                     })
                .message,
            "");
}

TEST(MetricSumsOnRanks, RefuseUnlikeSizesOnAll) {
  EXPECT_EQ(
      in_ranks(2,
               [](World& world) {
                 MetricSums sums(of_both(), Phase::train);
                 const int64_t n = 1 + world.ranks().rank();
                 sums.add(Counted(), fed({at::full({n}, 1.0), at::full({1, 2}, 1.0)}));
                 const std::string problem = problem_of([&] { (void)sums.values(world.ranks()); });
                 require(problem.find("sums of one micro-batch") != std::string::npos, problem);
               })
          .message,
      "");
}

}  // namespace
}  // namespace phalanx
