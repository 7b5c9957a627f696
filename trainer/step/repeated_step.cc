// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/repeated_step.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "trainer/api/task.h"

namespace phalanx {

double RepeatedStep::weight_of(const Batch& batch) const {
  int64_t tokens = 0;
  for (const auto& each : micro_batches_) tokens += each->counted_tokens();
  return static_cast<double>(batch.counted_tokens()) /
         static_cast<double>(std::max<int64_t>(tokens, 1));
}

Loss RepeatedStep::forward(const Batch& batch) {
  count_pass();
  return model_.forward(batch, state_);
}

std::vector<at::Tensor> RepeatedStep::run(c10::function_ref<std::vector<at::Tensor>()> pass,
                                          bool synchronize) {
  count_pass();
  return model_.run(pass, synchronize);
}

void RepeatedStep::count_pass() {
  if (++passes_ > kMostPasses * micro_batches_.size()) {
    throw std::runtime_error("a step whose passes do not end without its updates");
  }
}

void repeat_step(TaskModel& model, const State& state, const Ranks& ranks,
                 std::span<const std::unique_ptr<Batch>> micro_batches) {
  const at::AutoGradMode with_grad(true);
  RepeatedStep step(model, state, ranks, micro_batches);
  model.task().run_step(step, model.model());
}

}  // namespace phalanx
