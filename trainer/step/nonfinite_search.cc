// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/nonfinite_search.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include "trainer/step/repeated_step.h"

namespace phalanx {
namespace {

// `are_all`: no micro-batch of the step is missing. A task's own step may count on their number.
NonfiniteOrigin search(const PassContext& context, const KnownSamples& samples,
                       std::span<const std::unique_ptr<Batch>> micro_batches, bool are_all) {
  std::vector<PassFault> passes;
  const auto add = [&](const Batch& batch, std::function<void(TaskModel&)> again) {
    passes.push_back({.task_model = context.parts.task_model(),
                      .batch = batch,
                      .samples = samples,
                      .device = context.parts.device(),
                      .again = std::move(again)});
  };
  // A task's own step may compute otherwise than its loss does.
  const auto counting =
      std::ranges::find_if(micro_batches, [](const auto& batch) { return batch->counts; });
  if (are_all && counting != micro_batches.end()) {
    add(**counting, [&context, micro_batches](TaskModel& model) {
      repeat_step(model, context.state, context.parts.data_ranks(), micro_batches);
    });
  }
  for (const auto& batch : micro_batches) {
    add(*batch,
        [&context, &batch = *batch](TaskModel& model) { model.forward(batch, context.state); });
  }
  return nonfinite_origin(passes);
}

}  // namespace

NonfiniteOrigin NonfiniteSearch::origin_of(
    std::span<const std::unique_ptr<Batch>> micro_batches) const {
  return search(context_, samples_, micro_batches, /*are_all=*/true);
}

NonfiniteOrigin NonfiniteSearch::origin_of_samples(
    std::span<const std::vector<int64_t>> samples) const {
  const std::vector<std::unique_ptr<Batch>> found = read_again(samples);
  return search(context_, samples_, found, found.size() == samples.size());
}

std::vector<std::unique_ptr<Batch>> NonfiniteSearch::read_again(
    std::span<const std::vector<int64_t>> samples) const {
  std::vector<std::unique_ptr<Batch>> batches;
  try {
    for (const auto& numbers : samples) {
      if (numbers.empty()) continue;
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
