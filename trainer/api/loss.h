// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "trainer/api/metric.h"

namespace phalanx {

/// What a metric of a task is fed for one micro-batch.
struct FedMetric {
  std::string name;
  MetricInputs inputs;
};

/// What a task computes for a micro-batch: one scalar, or several with names that are summed for
/// the gradient and logged apart. Each is a mean over the micro-batch's `Batch::tokens` terms.
class Loss {
 public:
  using Parts = std::vector<std::pair<std::string, at::Tensor>>;

  Loss(at::Tensor value) {  // NOLINT: a loss is a tensor
    parts_.emplace_back("loss", std::move(value));
  }
  /// Named losses, for example {{"policy", a}, {"value", b}}. Throws std::invalid_argument when
  /// empty or when two have one name; a part called "loss" is refused beside others, for that is
  /// the name of the sum. Every micro-batch has the same parts in the same order.
  Loss(Parts parts);  // NOLINT: as above

  const Parts& parts() const { return parts_; }

  /// The sum of the parts, in their order: the scalar that is differentiated.
  at::Tensor total() const;

  /// The same with other tensors in place of its parts', in their order.
  Loss with_values(const std::vector<at::Tensor>& values) &&;

  /// Feeds a metric that the task has declared (AnyTask::declare_metrics), beside the loss and
  /// without a gradient: `loss.metric("accuracy", {logits, labels})`. Where the metric is not
  /// measured in this phase, or the micro-batch does not count, nothing is added.
  void metric(std::string name, MetricInputs inputs);
  /// A value, and what it weighs in a mean.
  void metric(std::string name, const at::Tensor& value, double weight = 1);
  void metric(std::string name, double value, double weight = 1);

  const std::vector<FedMetric>& metrics() const { return metrics_; }
  /// The same, which keep their tensors no longer than who takes them.
  std::vector<FedMetric> take_metrics() { return std::exchange(metrics_, {}); }

 private:
  Parts parts_;
  std::vector<FedMetric> metrics_;
};

}  // namespace phalanx
