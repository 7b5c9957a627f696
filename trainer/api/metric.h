// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace phalanx {

/// What a task feeds a metric for a micro-batch. Each metric says which tensors it takes, in which
/// order.
using MetricInputs = std::vector<at::Tensor>;

/// What a micro-batch adds to a metric. Either may be undefined.
struct MetricPart {
  at::Tensor sums;  ///< [n]: added over micro-batches and ranks, in float64.
  at::Tensor rows;  ///< [m, columns]: put together over micro-batches and ranks, in float64.
};

/// What all micro-batches of all ranks come to, in host memory.
struct MetricTotals {
  std::vector<double> sums;
  /// [m, columns] of float64, contiguous; undefined without any. Their order depends on the ranks.
  at::Tensor rows;
};

/// A metric: what it keeps of a micro-batch, and which values it makes of all that was kept. It has
/// no state of its own: the trainer adds the parts over micro-batches and ranks (MetricSums).
class Metric {
 public:
  virtual ~Metric() = default;

  /// What follows the name of the metric in the names of its values: "" for the name alone, "low"
  /// for NAME_low.
  virtual std::vector<std::string> names() const { return {""}; }

  /// What a micro-batch adds. `inputs` need no gradient. Must not wait for a device: no `item()`,
  /// no indexing by a mask. Throws std::invalid_argument for inputs that it does not take.
  virtual MetricPart measure(const MetricInputs& inputs) const = 0;

  /// The values, in the order of `names`; NaN where one is not defined. Must not depend on the
  /// order of the rows.
  virtual std::vector<double> values(const MetricTotals& totals) const = 0;
};

}  // namespace phalanx
