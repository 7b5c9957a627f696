// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/validation_mixin.h"

#include "trainer/config/tree/schema.h"

namespace phalanx {

void ValidationTextsConfig::describe(config::Schema<ValidationTextsConfig>& s) {
  s.field("n", &ValidationTextsConfig::n,
          "write texts for the first n samples of the validation data, in its own order, and "
          "compare them with their targets: exact match and ROUGE (task.generation says how); 0: "
          "none")
      .at_least(0)
      .unit("samples")
      .resume_may_change();
}

void ValidationConfig::describe(config::Schema<ValidationConfig>& s) {
  s.field("every_n_steps", &ValidationConfig::every_n_steps, "validate after every n steps")
      .count()
      .unit("steps")
      .at_least(1)
      .resume_may_change();
  s.field("every_n_epochs", &ValidationConfig::every_n_epochs, "validate after every n epochs")
      .unit("epochs")
      .at_least(1)
      .resume_may_change();
  s.field("at_end", &ValidationConfig::at_end, "validate after the last step of the run")
      .resume_may_change();
  s.field("at_start", &ValidationConfig::at_start,
          "validate before the first step of a run: what it begins with")
      .resume_may_change();
  s.field("max_batches", &ValidationConfig::max_batches,
          "use the first n micro-batches of each rank's validation data; null: all")
      .unit("micro-batches")
      .at_least(1)
      .resume_may_change();
  s.field("generate", &ValidationConfig::generate, "the texts of a validation");
  s.ineffective({"max_batches", "generate"}, "nothing says when to validate",
                [](const ValidationConfig& c) { return !c.validates(); });
}

ValidationAmount validation_amount(const config::Node& resolved) {
  const config::Node* section = resolved.find(kValidationSection);
  if (section == nullptr) return {};
  return config::read<ValidationConfig>(*section).amount();
}

bool ValidationConfig::due(const State& state, const StepResult& result) const {
  if (every_n_steps && state.step % *every_n_steps == 0) return true;
  if (every_n_epochs && result.ends_epoch && (state.epoch + 1) % *every_n_epochs == 0) return true;
  return at_end && result.ends_training;
}

}  // namespace phalanx
