// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "trainer/api/metric.h"

namespace phalanx::metrics {

struct AccuracyOptions {
  int64_t top_k = 1;       ///< A target among the k classes of the highest scores is right.
  double threshold = 0.5;  ///< Of predictions that are no scores of classes: above it is class 1.
};

/// Fed predictions, targets and perhaps weights (PredictedClasses): the share that is right.
std::shared_ptr<const Metric> accuracy(const AccuracyOptions& options = {});

}  // namespace phalanx::metrics
