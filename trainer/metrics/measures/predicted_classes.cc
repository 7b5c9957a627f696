// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/measures/predicted_classes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <stdexcept>

#include "trainer/metrics/measures/inputs.h"

namespace phalanx::metrics {

PredictedClasses::PredictedClasses(const MetricInputs& inputs, double threshold) {
  require_inputs(inputs, 2, 3, "predictions, targets and perhaps weights");
  const at::Tensor& predictions = inputs[0];
  targets = inputs[1].to(at::kLong).reshape(-1);
  if (predictions.dim() == inputs[1].dim() + 1) {
    if (predictions.size(-1) < 2) {
      throw std::invalid_argument(fmt::format(
          "its scores have {} class behind the targets' dimensions: feed numbers with the targets' "
          "dimensions, which the threshold divides, or a score for each class",
          predictions.size(-1)));
    }
    scores = predictions.reshape({-1, predictions.size(-1)});
    predicted = scores.argmax(-1);
  } else if (predictions.is_floating_point()) {
    predicted = (predictions > threshold).to(at::kLong).reshape(-1);
  } else {
    predicted = predictions.to(at::kLong).reshape(-1);
  }
  if (predicted.numel() != targets.numel()) {
    throw std::invalid_argument(fmt::format(
        "it is fed {} predictions and {} targets: scores have the targets' dimensions and behind "
        "them the classes",
        predicted.numel(), targets.numel()));
  }
  weights = counterparts(targets, inputs, 2);
  weights = at::where(targets < 0, at::zeros_like(weights), weights);
}

}  // namespace phalanx::metrics
