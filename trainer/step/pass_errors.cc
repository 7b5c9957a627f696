// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/pass_errors.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/step/activity.h"
#include "trainer/step/out_of_memory.h"
#include "trainer/step/step_fault.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {

PassErrors::PassErrors(StepParts& parts, const State& state, int64_t batch_size, Advice advice)
    : parts_(parts), state_(state), batch_size_(batch_size), advice_(std::move(advice)) {}

void PassErrors::explain_memory(const std::exception& error, std::string_view activity) const {
  if (!is_out_of_memory(error)) return;
  std::vector<std::string> advice;
  if (batch_size_ > 1) {
    advice.emplace_back(
        "a smaller training.batch_size with more gradient_accumulation_steps (activations)");
  }
  if (advice_) std::ranges::move(advice_(), std::back_inserter(advice));
  advice.emplace_back("more ranks that share the model, or a smaller one");
  throw std::runtime_error(explain_out_of_memory(error, place_of(state_.step, activity),
                                                 parts_.task_model(), parts_.optimizers(), advice));
}

void PassErrors::explain(const std::exception& error, const PassWork& work,
                         const std::function<void(TaskModel& model)>& again) const {
  explain_memory(error, work.activity);
  if (work.batch == nullptr || explains_itself(error)) return;
  const ExplainedFault explained = explain_error(error, place_of(state_.step, work.activity),
                                                 {.task_model = parts_.task_model(),
                                                  .batch = *work.batch,
                                                  .samples = *work.samples,
                                                  .device = parts_.device(),
                                                  .again = again});
  if (explained.is_of_data) throw UserError(explained.text);
  if (explained.text != error_text(error)) throw std::runtime_error(explained.text);
}

}  // namespace phalanx
