// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/validation_mixin.h"

#include <fmt/format.h>

#include "trainer/api/named_metrics.h"
#include "trainer/api/task.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/schema.h"
#include "trainer/io/named_files.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/metrics/console.h"
#include "trainer/mixins/never_acts.h"
#include "trainer/plan/run_plan.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

bool is_multiple(const State& state, std::optional<int64_t> steps) {
  return steps && state.step % *steps == 0;
}

// By what ends with the step: its epoch, or the run.
bool is_due_at_end(const ValidationConfig& config, const State& state, const StepResult& result) {
  const auto& epochs = config.every_n_epochs;
  if (epochs && result.ends_epoch && (state.epoch + 1) % *epochs == 0) return true;
  return config.at_end && result.ends_training;
}

}  // namespace

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
  s.field(
       "max_batches", &ValidationConfig::max_batches,
       "use n micro-batches of each rank's validation data, and of each set, whose samples are at "
       "equal distances in it; null: all")
      .unit("micro-batches")
      .at_least(1)
      .resume_may_change();
  s.field("sets", &ValidationConfig::sets,
          "more validation data by names: files, folders or patterns, each set read as the task's "
          "own validation data; its values are NAME/loss and so on, and keep_best may name one")
      .resume_may_change();
  s.field("generate", &ValidationConfig::generate, "the texts of a validation");
  s.check([](const ValidationConfig& c) -> std::optional<std::string> {
    for (const auto& [name, files] : c.sets) {
      if (name.empty() || name.find_first_of("/ \t\n") != std::string::npos) {
        return "sets: '" + name +
               "' is no name of a set: it begins those of its values, so write "
               "one without blanks and slashes";
      }
      if (files.empty()) return "sets." + name + " names no files";
    }
    return std::nullopt;
  });
  s.ineffective({"max_batches", "sets", "generate"}, "nothing says when to validate",
                [](const ValidationConfig& c) { return !c.validates(); });
}

void plan_validation(const ValidationConfig& config, RunPlan& plan) {
  plan.check_validation_sets = [sets = config.sets] {
    for (const auto& [name, files] : sets) {
      for (const auto& path : files) {
        if (names_files(path)) continue;
        throw UserError(
            fmt::format("validation.sets.{}: there is no '{}' on this host", name, path.string()));
      }
    }
  };
}

void leave_out_validation_sets(config::Node& resolved) {
  config::Node* section = resolved.find(kValidationSection);
  if (section != nullptr) section->set("sets", config::Node::map());
}

void open_validation_sets(TrainerBase& trainer, const ValidationConfig& config) {
  if (trainer.purpose() == Purpose::use) return;
  for (const auto& [name, files] : config.sets) {
    trainer.add_validation_set(name, make_chosen<AnyTask>(trainer.resolved_config()), files);
  }
}

void warn_without_validation(const TrainerBase& trainer, const ValidationConfig& config) {
  if (!trainer.ranks().is_first() || trainer.finished()) return;
  const bool is_asked_for = config.every_n_steps || config.every_n_epochs || config.at_start;
  std::vector<std::string> in_need;
  for (const std::string& field : fields_in_need_of_validation(trainer.resolved_config())) {
    in_need.push_back(field + " is set" + place_of(trainer.resolved_config(), {field}));
  }
  const auto warn = [](const std::string& what, const char* why) {
    Console::standard().line("warning: " + what + ", and " + why);
  };
  if (!trainer.can_validate()) {
    constexpr const char* kWhy =
        "there is no validation data: nothing is validated (task.data says which it is, or "
        "validation.sets)";
    if (is_asked_for) warn("validation is asked for", kWhy);
    for (const std::string& what : in_need) warn(what, kWhy);
  } else if (!config.validates()) {
    for (const std::string& what : in_need) {
      warn(what, "nothing says when to validate: set validation.every_n_steps or at_end");
    }
  }
}

void require_metric_of_schedule(const TrainerBase& trainer) {
  const config::Node* metric = trainer.resolved_config().find_path("lr_scheduler.metric");
  if (metric == nullptr || trainer.validation_names().empty()) return;
  require_metric(trainer.validation_names(), metric->text, "lr_scheduler.metric");
}

ValidationAmount validation_amount(const config::Node& resolved) {
  const config::Node* section = resolved.find(kValidationSection);
  if (section == nullptr) return {};
  return config::read<ValidationConfig>(*section).amount();
}

bool ValidationConfig::due(const State& state, const StepResult& result) const {
  return is_multiple(state, every_n_steps) || is_due_at_end(*this, state, result);
}

bool ValidationConfig::due_undone(const State& state, const StepResult& end) const {
  return !is_multiple(state, every_n_steps) && is_due_at_end(*this, state, end);
}

}  // namespace phalanx
