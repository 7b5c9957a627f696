// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/measures/accuracy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "trainer/metrics/measures/inputs.h"
#include "trainer/metrics/measures/predicted_classes.h"

namespace phalanx::metrics {
namespace {

class Accuracy : public Metric {
 public:
  explicit Accuracy(const AccuracyOptions& options) : options_(options) {
    if (options.top_k < 1) throw std::invalid_argument("accuracy: top_k is below 1");
  }

  MetricPart measure(const MetricInputs& inputs) const override {
    const PredictedClasses classes(inputs, options_.threshold);
    const at::Tensor right = is_right(classes).to(at::kDouble);
    return {.sums = at::stack({weighed_sum(right, classes.weights), classes.weights.sum()}),
            .rows = {}};
  }
  std::vector<double> values(const MetricTotals& totals) const override {
    return {quotient(totals.sums.at(0), totals.sums.at(1))};
  }

 private:
  at::Tensor is_right(const PredictedClasses& classes) const {
    if (options_.top_k == 1) return classes.predicted == classes.targets;
    if (!classes.scores.defined()) {
      throw std::invalid_argument("with top_k it takes the scores of all classes");
    }
    const int64_t k = std::min(options_.top_k, classes.scores.size(-1));
    const at::Tensor best = std::get<1>(classes.scores.topk(k, -1));
    return (best == classes.targets.unsqueeze(-1)).any(-1);
  }

  AccuracyOptions options_;
};

}  // namespace

std::shared_ptr<const Metric> accuracy(const AccuracyOptions& options) {
  return std::make_shared<Accuracy>(options);
}

}  // namespace phalanx::metrics
