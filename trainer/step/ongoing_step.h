// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/api/step_guard.h"
#include "trainer/api/step_result.h"
#include "trainer/metrics/metric_sums.h"
#include "trainer/step/stopwatch.h"

namespace phalanx {

/// The step that runs, or the last one.
struct OngoingStep {
  StepResult result;
  MetricSums metrics = {MetricSet(), Phase::train};  ///< Those that the task declares.
  /// Of losses without a micro-batch; they become the result's last parts when the step ends.
  std::vector<std::pair<std::string, at::Tensor>> own_parts;
  std::vector<std::unique_ptr<Batch>> micro_batches;  ///< This rank's.
  bool is_norm_requested = false;  ///< Somebody asks for the gradient norm although nothing clips.
  bool are_metrics_requested = false;  ///< Somebody reads `metrics` of this step.
  bool has_moved = false;  ///< An optimizer has; where a device decides by itself, it may have.
  bool is_undone = false;  ///< By a guard: the run goes back to a checkpoint.
  bool is_running = false;
  Stopwatch::Clock::time_point began;

  /// The parts of all losses that have been differentiated by now.
  std::vector<std::pair<std::string, at::Tensor>> loss_parts() const {
    auto parts = result.loss_parts;
    parts.insert(parts.end(), own_parts.begin(), own_parts.end());
    return parts;
  }

  /// Begins the next one.
  void begin() {
    began = Stopwatch::Clock::now();
    result.loss_parts.clear();  // their memory serves every step
    result = {.loss_parts = std::move(result.loss_parts)};
    metrics.clear();
    own_parts.clear();
    is_norm_requested = false;
    are_metrics_requested = false;
    has_moved = false;
    is_undone = false;
    is_running = true;
  }
};

}  // namespace phalanx
