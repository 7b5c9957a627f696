// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/nonfinite_search.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include "trainer/step/repeated_step.h"

namespace phalanx {

NonfiniteOrigin NonfiniteSearch::origin_of(
    std::span<const std::unique_ptr<Batch>> micro_batches) const {
  std::vector<PassFault> passes;
  const auto add = [&](const Batch& batch, std::function<void(TaskModel&)> again) {
    passes.push_back({.task_model = context_.parts.task_model(),
                      .batch = batch,
                      .samples = samples_,
                      .device = context_.parts.device(),
                      .again = std::move(again)});
  };
  // A task's own step may compute otherwise than its loss does.
  const auto counting =
      std::ranges::find_if(micro_batches, [](const auto& batch) { return batch->counts; });
  if (counting != micro_batches.end()) {
    add(**counting, [this, micro_batches](TaskModel& model) {
      repeat_step(model, context_.state, context_.parts.data_ranks(), micro_batches);
    });
  }
  for (const auto& batch : micro_batches) {
    add(*batch,
        [this, &batch = *batch](TaskModel& model) { model.forward(batch, context_.state); });
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
