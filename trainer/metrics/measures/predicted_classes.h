// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/api/metric.h"

namespace phalanx::metrics {

/// What a metric of classes is fed: predictions, targets and perhaps weights. Targets are classes,
/// from 0 on; one below 0 does not count (the -100 of torch's ignore_index). Predictions are scores
/// (logits or probabilities) with one more dimension than the targets, the classes last; or
/// classes; or floating-point numbers, of which those above `threshold` mean class 1.
struct PredictedClasses {
  PredictedClasses(const MetricInputs& inputs, double threshold);

  at::Tensor scores;     ///< [n, classes]; undefined where classes are fed.
  at::Tensor predicted;  ///< [n], int64: the class with the highest score.
  at::Tensor targets;    ///< [n], int64.
  at::Tensor weights;    ///< [n], float64: 0 for a target that does not count.
};

}  // namespace phalanx::metrics
