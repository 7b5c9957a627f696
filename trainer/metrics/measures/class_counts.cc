// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/measures/class_counts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/metrics/measures/predicted_classes.h"

namespace phalanx::metrics {
namespace {

// Classes that the declaration does not know have no place among the counts. Their weight is kept
// apart: an index out of range would end a GPU's work, and a look at it would wait for the GPU.
struct KnownClasses {
  KnownClasses(const MetricInputs& inputs, int64_t classes, double threshold) {
    const PredictedClasses given(inputs, threshold);
    const at::Tensor is_unknown = (given.targets >= classes)
                                      .logical_or(given.predicted < 0)
                                      .logical_or(given.predicted >= classes);
    const at::Tensor none = at::zeros_like(given.weights);
    unknown = at::where(is_unknown, given.weights, none).sum().reshape(1);
    weights = at::where(is_unknown, none, given.weights);
    targets = given.targets.clamp(0, classes - 1);
    predicted = given.predicted.clamp(0, classes - 1);
  }

  at::Tensor targets;
  at::Tensor predicted;
  at::Tensor weights;
  at::Tensor unknown;  ///< [1]: the weight of samples with such classes.
};

at::Tensor counts(const at::Tensor& places, const at::Tensor& weights, int64_t size) {
  return at::zeros({size}, weights.options()).scatter_add(0, places, weights);
}

void require_known(const MetricTotals& totals, int64_t classes) {
  if (totals.sums.back() == 0) return;
  throw std::logic_error(fmt::format(
      "it is declared for the classes 0 to {}, and fed others: declare it with their number",
      classes - 1));
}

void require_some(int64_t classes) {
  if (classes < 2) throw std::invalid_argument("a metric of classes takes two of them at least");
}

struct ClassCounts {
  double right = 0;
  double predicted = 0;
  double actual = 0;
};

double share(double part, double whole) { return whole == 0 ? 0 : part / whole; }

double precision_of(const ClassCounts& c) { return share(c.right, c.predicted); }
double recall_of(const ClassCounts& c) { return share(c.right, c.actual); }
double f1_of(const ClassCounts& c) { return share(2 * c.right, c.predicted + c.actual); }

/// A score by the counts of each class.
class ClassScore : public Metric {
 public:
  using Score = double (*)(const ClassCounts&);

  ClassScore(const ClassOptions& options, Score score) : options_(options), score_(score) {
    require_some(options.classes);
    if (options.average == Average::binary && options.classes != 2) {
      throw std::invalid_argument("Average::binary is of two classes: use micro or macro");
    }
  }

  MetricPart measure(const MetricInputs& inputs) const override {
    const int64_t n = options_.classes;
    const KnownClasses given(inputs, n, options_.threshold);
    const at::Tensor right =
        at::where(given.predicted == given.targets, given.weights, at::zeros_like(given.weights));
    return {
        .sums = at::cat({counts(given.targets, right, n), counts(given.predicted, given.weights, n),
                         counts(given.targets, given.weights, n), given.unknown}),
        .rows = {}};
  }

  std::vector<double> values(const MetricTotals& totals) const override {
    require_known(totals, options_.classes);
    switch (options_.average) {
      case Average::binary:
        return {score_(of_class(totals, 1))};
      case Average::micro:
        return {micro(totals)};
      case Average::macro:
        return {macro(totals)};
    }
    return {};
  }

 private:
  ClassCounts of_class(const MetricTotals& totals, int64_t i) const {
    const auto at = [&](int64_t place) { return totals.sums.at(static_cast<size_t>(place)); };
    const int64_t n = options_.classes;
    return {.right = at(i), .predicted = at(n + i), .actual = at(2 * n + i)};
  }

  double micro(const MetricTotals& totals) const {
    ClassCounts all;
    for (int64_t i = 0; i < options_.classes; ++i) {
      const ClassCounts one = of_class(totals, i);
      all.right += one.right;
      all.predicted += one.predicted;
      all.actual += one.actual;
    }
    return score_(all);
  }

  double macro(const MetricTotals& totals) const {
    double sum = 0;
    double occurring = 0;
    for (int64_t i = 0; i < options_.classes; ++i) {
      const ClassCounts one = of_class(totals, i);
      if (one.predicted + one.actual == 0) continue;
      sum += score_(one);
      ++occurring;
    }
    return share(sum, occurring);
  }

  ClassOptions options_;
  Score score_;
};

class ConfusionMatrix : public Metric {
 public:
  ConfusionMatrix(int64_t classes, double threshold) : classes_(classes), threshold_(threshold) {
    require_some(classes);
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (int64_t target = 0; target < classes_; ++target) {
      for (int64_t predicted = 0; predicted < classes_; ++predicted) {
        names.push_back(fmt::format("{}_{}", target, predicted));
      }
    }
    return names;
  }

  MetricPart measure(const MetricInputs& inputs) const override {
    const KnownClasses given(inputs, classes_, threshold_);
    return {.sums = at::cat({counts(given.targets * classes_ + given.predicted, given.weights,
                                    classes_ * classes_),
                             given.unknown}),
            .rows = {}};
  }

  std::vector<double> values(const MetricTotals& totals) const override {
    require_known(totals, classes_);
    return {totals.sums.begin(), totals.sums.end() - 1};
  }

 private:
  int64_t classes_;
  double threshold_;
};

}  // namespace

std::shared_ptr<const Metric> precision(const ClassOptions& options) {
  return std::make_shared<ClassScore>(options, precision_of);
}
std::shared_ptr<const Metric> recall(const ClassOptions& options) {
  return std::make_shared<ClassScore>(options, recall_of);
}
std::shared_ptr<const Metric> f1(const ClassOptions& options) {
  return std::make_shared<ClassScore>(options, f1_of);
}
std::shared_ptr<const Metric> confusion_matrix(int64_t classes, double threshold) {
  return std::make_shared<ConfusionMatrix>(classes, threshold);
}

}  // namespace phalanx::metrics
