// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/measures/regression.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "trainer/metrics/measures/inputs.h"

namespace phalanx::metrics {
namespace {

struct Errors {
  explicit Errors(const MetricInputs& inputs) {
    require_inputs(inputs, 2, 3, "predictions, targets and perhaps weights");
    const at::Tensor predictions = flat(inputs[0]);
    targets = counterparts(predictions, inputs, 1);
    weights = counterparts(predictions, inputs, 2);
    errors = predictions - targets;
  }

  at::Tensor errors;
  at::Tensor targets;
  at::Tensor weights;
};

class MeanError : public Metric {
 public:
  std::vector<double> values(const MetricTotals& totals) const override {
    return {quotient(totals.sums.at(0), totals.sums.at(1))};
  }

 protected:
  static MetricPart mean_of(const at::Tensor& values, const at::Tensor& weights) {
    return {.sums = at::stack({weighed_sum(values, weights), weights.sum()}), .rows = {}};
  }
};

class MeanSquaredError : public MeanError {
 public:
  MetricPart measure(const MetricInputs& inputs) const override {
    const Errors given(inputs);
    return mean_of(given.errors.square(), given.weights);
  }
};

class RootMeanSquaredError : public MeanSquaredError {
 public:
  std::vector<double> values(const MetricTotals& totals) const override {
    return {std::sqrt(MeanSquaredError::values(totals).front())};
  }
};

class MeanAbsoluteError : public MeanError {
 public:
  MetricPart measure(const MetricInputs& inputs) const override {
    const Errors given(inputs);
    return mean_of(given.errors.abs(), given.weights);
  }
};

// A row for each micro-batch, of moments about its own mean: sums of squares less the square of a
// sum would lose targets that are far from 0.
class R2 : public Metric {
 public:
  MetricPart measure(const MetricInputs& inputs) const override {
    const Errors given(inputs);
    const at::Tensor weight = given.weights.sum();
    const at::Tensor sum = weighed_sum(given.targets, given.weights);
    const at::Tensor mean = at::where(weight == 0, at::zeros_like(sum), sum / weight);
    const at::Tensor spread = weighed_sum((given.targets - mean).square(), given.weights);
    const at::Tensor squares = weighed_sum(given.errors.square(), given.weights);
    const at::Tensor samples = (given.weights != 0).sum().to(at::kDouble);
    return {.sums = {}, .rows = at::stack({weight, mean, spread, squares, samples}).unsqueeze(0)};
  }

  std::vector<double> values(const MetricTotals& totals) const override {
    double weight = 0;
    double mean = 0;
    double spread = 0;
    double squares = 0;
    double samples = 0;
    const int64_t count = totals.rows.defined() ? totals.rows.size(0) : 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto* row = totals.rows.const_data_ptr<double>() + i * totals.rows.size(1);
      if (row[0] == 0) continue;
      const double both = weight + row[0];
      const double distance = row[1] - mean;
      spread += row[2] + distance * distance * weight * row[0] / both;
      mean += distance * row[0] / both;
      weight = both;
      squares += row[3];
      samples += row[4];
    }
    if (samples < 2) return {std::numeric_limits<double>::quiet_NaN()};
    // Equal targets differ from their mean by its rounding.
    const double rounding = 4 * std::numeric_limits<double>::epsilon() * std::abs(mean);
    if (spread <= weight * rounding * rounding) return {squares == 0 ? 1.0 : 0.0};
    return {1 - squares / spread};
  }
};

}  // namespace

std::shared_ptr<const Metric> mean_squared_error() { return std::make_shared<MeanSquaredError>(); }
std::shared_ptr<const Metric> root_mean_squared_error() {
  return std::make_shared<RootMeanSquaredError>();
}
std::shared_ptr<const Metric> mean_absolute_error() {
  return std::make_shared<MeanAbsoluteError>();
}
std::shared_ptr<const Metric> r2() { return std::make_shared<R2>(); }

}  // namespace phalanx::metrics
