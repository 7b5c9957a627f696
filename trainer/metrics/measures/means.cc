// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/measures/means.h"

#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <string>
#include <vector>

#include "trainer/metrics/measures/inputs.h"

namespace phalanx::metrics {
namespace {

class Mean : public Metric {
 public:
  MetricPart measure(const MetricInputs& inputs) const override {
    require_inputs(inputs, 1, 2, "values and perhaps weights");
    const at::Tensor values = flat(inputs[0]);
    const at::Tensor weights = counterparts(values, inputs, 1);
    return {.sums = at::stack({weighed_sum(values, weights), weights.sum()}), .rows = {}};
  }
  std::vector<double> values(const MetricTotals& totals) const override {
    return {quotient(totals.sums.at(0), totals.sums.at(1))};
  }
};

class Perplexity : public Mean {
 public:
  std::vector<double> values(const MetricTotals& totals) const override {
    return {std::exp(Mean::values(totals).front())};
  }
};

class Sum : public Metric {
 public:
  MetricPart measure(const MetricInputs& inputs) const override {
    require_inputs(inputs, 1, 1, "values");
    return {.sums = flat(inputs[0]).sum().reshape(1), .rows = {}};
  }
  std::vector<double> values(const MetricTotals& totals) const override { return totals.sums; }
};

class Count : public Sum {
 public:
  MetricPart measure(const MetricInputs& inputs) const override {
    require_inputs(inputs, 1, 1, "values");
    const at::TensorOptions options = inputs[0].options().dtype(at::kDouble);
    return {.sums = at::full({1}, static_cast<double>(inputs[0].numel()), options), .rows = {}};
  }
};

class Ratio : public Metric {
 public:
  MetricPart measure(const MetricInputs& inputs) const override {
    require_inputs(inputs, 2, 2, "numerators and denominators");
    const at::Tensor numerators = flat(inputs[0]);
    return {.sums = at::stack({numerators.sum(), flat(inputs[1]).to(numerators.device()).sum()}),
            .rows = {}};
  }
  std::vector<double> values(const MetricTotals& totals) const override {
    return {quotient(totals.sums.at(0), totals.sums.at(1))};
  }
};

}  // namespace

std::shared_ptr<const Metric> mean() { return std::make_shared<Mean>(); }
std::shared_ptr<const Metric> sum() { return std::make_shared<Sum>(); }
std::shared_ptr<const Metric> count() { return std::make_shared<Count>(); }
std::shared_ptr<const Metric> ratio() { return std::make_shared<Ratio>(); }
std::shared_ptr<const Metric> perplexity() { return std::make_shared<Perplexity>(); }

}  // namespace phalanx::metrics
