// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/step_fields.h"

#include <cstddef>
#include <optional>

#include "trainer/loop/trainer_base.h"
#include "trainer/mixins/step_values.h"

namespace phalanx {
namespace {

// The learning rate and the gradient norm of each optimizer that has moved.
void append_rates(const TrainerBase& trainer, const StepResult& result,
                  std::vector<std::pair<std::string, FieldValue>>& fields) {
  const auto add_norm = [&](const std::string& name, const std::optional<at::Tensor>& norm) {
    if (norm) fields.emplace_back(name, norm->item().toDouble());
  };
  const bool has_one = trainer.optimizers().front().name().empty();
  if (has_one && !result.is_skipped) fields.emplace_back("lr", result.lr);
  add_norm("grad_norm", result.grad_norm);
  for (const OptimizerResult& moved : result.optimizers) {
    fields.emplace_back("lr/" + moved.name, moved.lr);
    add_norm("grad_norm/" + moved.name, moved.grad_norm);
  }
}

}  // namespace

std::vector<std::pair<std::string, FieldValue>> step_fields(const TrainerBase& trainer,
                                                            const StepResult& result,
                                                            const NamedValues& values,
                                                            const StepValues& added) {
  const State& state = trainer.state();
  std::vector<std::pair<std::string, FieldValue>> fields;
  constexpr size_t kOthers = 8;  // rates, the loss scale, times
  fields.reserve(values.size() + 2 * result.optimizers.size() + kOthers);
  for (const auto& [name, value] : values) fields.emplace_back(name, value);
  append_rates(trainer, result, fields);
  added.append_to(fields);
  if (!result.guarded_by.empty()) fields.emplace_back("skipped", result.guarded_by);
  if (state.loss_scale > 0) {
    fields.emplace_back("loss_scale", state.loss_scale);
    fields.emplace_back("skipped_steps", state.overflowed_steps);
  }
  fields.emplace_back("tokens_per_second",
                      static_cast<double>(result.tokens) / result.step_seconds);
  fields.emplace_back("step_seconds", result.step_seconds);
  fields.emplace_back("data_seconds", result.data_seconds);
  return fields;
}

}  // namespace phalanx
