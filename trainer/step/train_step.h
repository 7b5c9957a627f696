// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "trainer/api/batch.h"
#include "trainer/api/known_samples.h"
#include "trainer/api/loss.h"
#include "trainer/step/nonfinite_search.h"
#include "trainer/step/ongoing_step.h"
#include "trainer/step/pass_context.h"
#include "trainer/step/weight_update.h"

namespace phalanx {

/// Runs the step's micro-batches, and moves the weights.
class TrainStep {
 public:
  /// `samples`: those of the training; they must outlive it, as what `context` refers to.
  TrainStep(const PassContext& context, const UpdateRules& rules, const KnownSamples& samples);
  TrainStep(const TrainStep&) = delete;
  TrainStep& operator=(const TrainStep&) = delete;

  OngoingStep& ongoing() { return ongoing_; }
  const OngoingStep& ongoing() const { return ongoing_; }

  /// The loss of a micro-batch of the step.
  Loss forward(const Batch& batch);
  /// Adds the gradients of that loss, weighed by the micro-batch's share of the step's tokens.
  void backward(const Loss& loss, const Batch& batch);
  /// See WeightUpdate.
  void update(std::optional<int64_t> total_steps) { update_.update(ongoing_, total_steps); }
  void settle() { update_.settle(); }

 private:
  void add_parts(const Loss& loss, double share);
  // What the gradient of a micro-batch's loss begins with.
  at::Tensor seed_of(const at::Tensor& loss, const Batch& batch) const;

  PassContext context_;
  UpdateRules rules_;
  const KnownSamples& samples_;
  NonfiniteSearch search_;
  OngoingStep ongoing_;
  WeightUpdate update_;
};

}  // namespace phalanx
