// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/measures/auc.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "trainer/metrics/measures/inputs.h"

namespace phalanx::metrics {
namespace {

constexpr int64_t kColumns = 3;  // score, target, weight

struct Scored {
  double score;
  bool is_positive;
  double weight;

  bool operator<(const Scored& other) const {
    return std::tie(score, is_positive, weight) <
           std::tie(other.score, other.is_positive, other.weight);
  }
};

// Those that count.
std::vector<Scored> samples_in(const at::Tensor& rows) {
  std::vector<Scored> samples;
  if (!rows.defined()) return samples;
  const auto* row = rows.const_data_ptr<double>();
  for (int64_t i = 0; i < rows.size(0); ++i, row += kColumns) {
    const double target = row[1];
    if (target < 0 || row[2] == 0) continue;
    if (target != 0 && target != 1) {
      throw std::logic_error("it is of two classes, with the targets 0 and 1, and fed others");
    }
    samples.push_back({.score = row[0], .is_positive = target == 1, .weight = row[2]});
  }
  return samples;
}

class RocAuc : public Metric {
 public:
  MetricPart measure(const MetricInputs& inputs) const override {
    require_inputs(inputs, 2, 3, "scores, targets and perhaps weights");
    at::Tensor scores = inputs[0].to(at::kDouble);
    if (scores.dim() == inputs[1].dim() + 1) {
      if (scores.size(-1) != 2) throw std::invalid_argument("it is of two classes");
      scores = scores.select(-1, 1) - scores.select(-1, 0);
    }
    scores = scores.reshape(-1);
    const at::Tensor targets = counterparts(scores, inputs, 1);
    return {.sums = {}, .rows = at::stack({scores, targets, counterparts(scores, inputs, 2)}, 1)};
  }

  std::vector<double> values(const MetricTotals& totals) const override {
    constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
    std::vector<Scored> samples = samples_in(totals.rows);
    for (const Scored& sample : samples) {
      if (std::isnan(sample.score)) return {kUndefined};
    }
    // By all they have, so that sums do not depend on the ranks.
    std::sort(samples.begin(), samples.end());
    double positives = 0;
    double negatives = 0;
    double area = 0;
    for (size_t begin = 0; begin < samples.size();) {
      double equal_positives = 0;
      double equal_negatives = 0;
      size_t end = begin;
      for (; end < samples.size() && samples[end].score == samples[begin].score; ++end) {
        (samples[end].is_positive ? equal_positives : equal_negatives) += samples[end].weight;
      }
      area += equal_positives * (negatives + equal_negatives / 2);
      positives += equal_positives;
      negatives += equal_negatives;
      begin = end;
    }
    if (positives == 0 || negatives == 0) return {kUndefined};
    return {area / (positives * negatives)};
  }
};

}  // namespace

std::shared_ptr<const Metric> roc_auc() { return std::make_shared<RocAuc>(); }

}  // namespace phalanx::metrics
