// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/nonfinite_search.h"

#include <exception>
#include <utility>

namespace phalanx {

NonfiniteOrigin NonfiniteSearch::origin_of(
    std::span<const std::unique_ptr<Batch>> micro_batches) const {
  std::vector<PassFault> passes;
  for (const auto& batch : micro_batches) {
    passes.push_back({.task_model = context_.parts.task_model(),
                      .batch = *batch,
                      .samples = samples_,
                      .device = context_.parts.device(),
                      .again = [this, &batch = *batch](TaskModel& model) {
                        model.forward(batch, context_.state);
                      }});
  }
  return nonfinite_origin(passes);
}

NonfiniteOrigin NonfiniteSearch::origin_of_samples(
    std::span<const std::vector<int64_t>> samples) const {
  return origin_of(read_again(samples));
}

std::vector<std::unique_ptr<Batch>> NonfiniteSearch::read_again(
    std::span<const std::vector<int64_t>> samples) const {
  std::vector<std::unique_ptr<Batch>> batches;
  try {
    for (const auto& numbers : samples) {
      if (auto batch = samples_.read_again(numbers)) {
        context_.transport.bring(*batch);
        batches.push_back(std::move(batch));
      }
    }
  } catch (const std::exception&) {
    // The error that they would explain is told without them.
  }
  return batches;
}

}  // namespace phalanx
