// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/api/loss.h"
#include "trainer/api/metric.h"
#include "trainer/api/metric_set.h"
#include "trainer/api/named_values.h"

namespace phalanx {

class Ranks;

/// What a rank's micro-batches add to a task's metrics, in a step or a validation. It stays where
/// the model computes until somebody asks for the values.
class MetricSums {
 public:
  /// The metrics of `set` that are measured in this phase.
  MetricSums(const MetricSet& set, Phase phase);

  /// Whether nothing is measured.
  bool empty() const { return measured_.empty(); }

  /// Adds what a task feeds for a micro-batch of this rank; nothing for one that does not count, or
  /// counts no tokens. Does not wait for a device. Throws std::logic_error for a metric that the
  /// task does not declare, and for an error of a metric, with its name; errors of memory pass.
  void add(const Batch& batch, const std::vector<FedMetric>& fed);

  /// Begins anew.
  void clear();

  /// The values over all ranks, the same on each. Waits for the device. Every rank calls it, or
  /// none. A metric that nothing was fed on any rank is left out of a step's values, and NaN in a
  /// validation's. Throws std::logic_error where the parts of a metric do not fit together.
  NamedValues values(const Ranks& ranks) const;

 private:
  struct Measured {
    std::string name;
    std::shared_ptr<const Metric> metric;
    at::Tensor sums;               // undefined: nothing is fed
    std::vector<at::Tensor> rows;  // of each micro-batch
  };

  void add_to(Measured& measured, const MetricInputs& inputs) const;

  Phase phase_;
  std::vector<std::string> declared_;  // in any phase
  std::vector<Measured> measured_;
};

/// Puts metrics behind a step's or a validation's other values. Throws std::logic_error for a name
/// that one of these has.
void append_metrics(NamedValues& values, const NamedValues& metrics);

}  // namespace phalanx
