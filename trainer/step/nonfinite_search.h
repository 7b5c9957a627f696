// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/api/known_samples.h"
#include "trainer/step/pass_context.h"
#include "trainer/step/step_fault.h"

namespace phalanx {

/// Searches for where the values of a step that are not finite come from.
class NonfiniteSearch {
 public:
  /// `samples`: those of the training; they must outlive it.
  NonfiniteSearch(const PassContext& context, const KnownSamples& samples)
      : context_(context), samples_(samples) {}

  /// By the micro-batches of the step's passes.
  NonfiniteOrigin origin_of(std::span<const std::unique_ptr<Batch>> micro_batches) const;

  /// By the samples of each micro-batch, which are read again; those that cannot be are left out.
  NonfiniteOrigin origin_of_samples(std::span<const std::vector<int64_t>> samples) const;

 private:
  std::vector<std::unique_ptr<Batch>> read_again(
      std::span<const std::vector<int64_t>> samples) const;

  PassContext context_;
  const KnownSamples& samples_;
};

}  // namespace phalanx
