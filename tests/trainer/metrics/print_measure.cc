// SPDX-License-Identifier: Apache-2.0
// print_measure: reads cases from its input: a metric with its options, the samples and the ends of
// the micro-batches, and prints a line of values for each:
//
//   NAME CLASSES AVERAGE TOP_K COLUMNS SAMPLES BATCHES, the end of each batch, then for each sample
//   its COLUMNS predictions (0: a single one), its target and its weight.
#include <ATen/ops/empty.h>

#include <cstdint>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/metrics/fed.h"
#include "trainer/metrics/measures/accuracy.h"
#include "trainer/metrics/measures/auc.h"
#include "trainer/metrics/measures/class_counts.h"
#include "trainer/metrics/measures/means.h"
#include "trainer/metrics/measures/regression.h"
#include "trainer/metrics/metric_sums.h"
#include "trainer/ranks/ranks.h"

namespace {

using namespace phalanx;  // NOLINT: a program

struct Options {
  int64_t classes = 2;
  std::string average;
  int64_t top_k = 1;
};

metrics::Average average_of(const std::string& name) {
  if (name == "binary") return metrics::Average::binary;
  return name == "micro" ? metrics::Average::micro : metrics::Average::macro;
}

std::shared_ptr<const Metric> metric_of(const std::string& name, const Options& options) {
  const metrics::ClassOptions of_classes{.classes = options.classes,
                                         .average = average_of(options.average)};
  using Make = std::function<std::shared_ptr<const Metric>()>;
  const std::map<std::string, Make> all{
      {"accuracy", [&] { return metrics::accuracy({.top_k = options.top_k}); }},
      {"precision", [&] { return metrics::precision(of_classes); }},
      {"recall", [&] { return metrics::recall(of_classes); }},
      {"f1", [&] { return metrics::f1(of_classes); }},
      {"confusion", [&] { return metrics::confusion_matrix(options.classes); }},
      {"auc", [] { return metrics::roc_auc(); }},
      {"mse", [] { return metrics::mean_squared_error(); }},
      {"mae", [] { return metrics::mean_absolute_error(); }},
      {"r2", [] { return metrics::r2(); }},
  };
  return all.at(name)();
}

template <class Number>
Number read_number() {
  Number number{};
  if (!(std::cin >> number)) throw std::runtime_error("the input ends within a case");
  return number;
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  std::cout << std::setprecision(std::numeric_limits<double>::max_digits10);
  std::string name;
  while (std::cin >> name) {
    Options options;
    options.classes = read_number<int64_t>();
    std::cin >> options.average;
    options.top_k = read_number<int64_t>();
    const auto columns = read_number<int64_t>();
    const auto samples = read_number<int64_t>();
    std::vector<int64_t> ends(read_number<size_t>());
    for (int64_t& end : ends) end = read_number<int64_t>();
    const int64_t width = columns == 0 ? 1 : columns;
    const at::Tensor rows = at::empty({samples, width + 2}, at::kDouble);
    auto* next = rows.mutable_data_ptr<double>();
    for (int64_t i = 0; i < rows.numel(); ++i) *next++ = read_number<double>();
    at::Tensor predictions = rows.narrow(1, 0, width);
    if (columns == 0) predictions = predictions.squeeze(1);
    MetricSums sums(set_of(metric_of(name, options)), Phase::validate);
    int64_t begin = 0;
    for (const int64_t end : ends) {
      const auto part = [&](const at::Tensor& all) { return all.narrow(0, begin, end - begin); };
      sums.add(Counted(), fed({part(predictions), part(rows.select(1, width)),
                               part(rows.select(1, width + 1))}));
      begin = end;
    }
    for (const auto& [key, value] : sums.values(Ranks())) std::cout << value << ' ';
    std::cout << '\n';
  }
  return 0;
}
