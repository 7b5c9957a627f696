// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string_view>

#include "trainer/api/batch.h"
#include "trainer/api/known_samples.h"
#include "trainer/step/fault_look.h"
#include "trainer/step/pass_context.h"

namespace phalanx {

/// A pass of a task's own step (TrainingStep::run), or a backward pass of what such passes gave.
struct OwnPass {
  std::string_view activity;                              ///< "forward"
  std::span<const std::unique_ptr<Batch>> micro_batches;  ///< Those of the step.
  const KnownSamples* samples = nullptr;                  ///< Those of the training.
  PassAgain again = {};
};

/// As PassErrors::explain, of a pass that does not say which micro-batch it is of: the only one, or
/// that whose tensors it computed with last, as the pass shows when it is called again. Where it
/// cannot be called again, or does not fail again, all micro-batches are named.
void explain_own_pass(const std::exception& error, const OwnPass& pass, const PassContext& context);

}  // namespace phalanx
