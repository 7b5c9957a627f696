// SPDX-License-Identifier: Apache-2.0
#include "trainer/trainer_schema.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/about_config.h"
#include "trainer/api/metric_set.h"
#include "trainer/api/task.h"
#include "trainer/base/joined.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/training_config.h"
#include "trainer/optim/optimizers_section.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

const config::Node* sets_of(const config::Node& resolved) {
  return resolved.find_path("validation.sets");
}

bool has_sets(const config::Node& resolved) {
  const config::Node* sets = sets_of(resolved);
  return sets != nullptr && !sets->entries.empty();
}

// "loss" of "books/loss", if there is a set of that name.
std::string name_in_set(const std::string& metric, const config::Node& resolved) {
  const std::size_t slash = metric.find('/');
  const config::Node* sets = sets_of(resolved);
  if (slash == std::string::npos || sets == nullptr) return metric;
  return sets->find(metric.substr(0, slash)) == nullptr ? metric : metric.substr(slash + 1);
}

// All values that a validation of the chosen task may give; empty where that is not known.
std::vector<std::string> values_of_validation(const config::Node& task) {
  const ClassEntry<AnyTask>& entry = Registry<AnyTask>::instance().at(task.find("name")->text);
  std::vector<std::string> values(entry.metric_names.begin(), entry.metric_names.end());
  if (!entry.declares_metrics) return values;
  if (values.empty()) {
    if (entry.derives_figures) return {};
    values.emplace_back("loss");
  }
  const MetricSet declared = declared_metrics(*entry.make(task));
  for (std::string& value : declared.value_names(Phase::validate)) {
    if (std::ranges::find(values, value) == values.end()) values.push_back(std::move(value));
  }
  return values;
}

// The fields that name a value of a validation.
constexpr std::array<std::string_view, 3> kMetricFields{
    "checkpoint.keep_best.metric", "early_stopping.metric", "lr_scheduler.metric"};

// A section's own check does not see which task is chosen.
std::optional<std::string> unknown_metric(const config::Node& resolved, std::string_view field) {
  const config::Node* metric = resolved.find_path(field);
  const config::Node* task = resolved.find("task");
  const config::Node* chosen = resolved.find_path("task.name");
  if (metric == nullptr || metric->is_null() || chosen == nullptr) return {};
  if (!Registry<AnyTask>::instance().table().contains(chosen->text)) return {};
  const std::vector<std::string> given = values_of_validation(*task);
  const std::string name = name_in_set(metric->text, resolved);
  if (given.empty() || std::ranges::find(given, name) != given.end()) return {};
  return std::string(field) + ": " + chosen->text + " gives no '" + metric->text + "'; it gives " +
         joined(given) + ": choose one of these" +
         (has_sets(resolved) ? ", or one of a set, as NAME/" + given.front() : "");
}

std::optional<std::string> unknown_metrics(const config::Node& resolved) {
  std::vector<std::string> fields(kMetricFields.begin(), kMetricFields.end());
  if (const config::Node* optimizers = resolved.find("optimizers")) {
    for (const auto& entry : optimizers->entries) {
      fields.push_back("optimizers." + entry.key + ".lr_scheduler.metric");
    }
  }
  for (const std::string& field : fields) {
    if (auto problem = unknown_metric(resolved, field)) return problem;
  }
  return {};
}

// What a field of a section says; empty where the composition lacks it, or it is null.
std::string text_at(const config::Node& resolved, std::string_view field) {
  const config::Node* value = resolved.find_path(field);
  return value == nullptr || value->is_null() ? "" : value->text;
}

// Guards go with what the sections training and checkpoint say.
std::optional<std::string> contradicted_guards(const config::Node& resolved) {
  const std::string on_nonfinite = text_at(resolved, "guards.on_nonfinite");
  if (!on_nonfinite.empty() && text_at(resolved, "training.stop_on_nonfinite_loss") == "false") {
    return "guards.on_nonfinite is " + on_nonfinite +
           ", and training.stop_on_nonfinite_loss: false says that losses which are not finite "
           "are ignored: remove one of the two";
  }
  for (const char* field : {"guards.on_nonfinite", "guards.on_spike"}) {
    if (text_at(resolved, field) != "rollback") continue;
    const config::Node* checkpoint = resolved.find("checkpoint");
    if (checkpoint == nullptr) {
      return std::string(field) + " is rollback, and this trainer saves no checkpoints: set skip";
    }
    if (text_at(*checkpoint, "save_every_n_steps").empty() &&
        text_at(*checkpoint, "save_every_n_seconds").empty() &&
        checkpoint->find_path("keep_best")->is_null()) {
      return std::string(field) +
             " is rollback, and no checkpoint is saved before the run's end: set "
             "checkpoint.save_every_n_steps";
    }
  }
  return {};
}

// All of it may change under a run, its class too, as that of an optimizer's own schedule may
// (optimizers.NAME.lr_scheduler): it has no tensors, and the state of another class begins anew.
config::Field schedule_field() {
  config::Choice choice = registered_choice<LrScheduler>();
  choice.default_name = "constant";
  config::Field field;
  field.name = choice.kind;
  field.meaning = choice.meaning = "learning rate over the steps";
  field.type.kind = config::Type::Kind::section;
  field.type.choice = std::make_shared<const config::Choice>(std::move(choice));
  field.resume_may_change = true;
  return field;
}

}  // namespace

config::Declaration trainer_declaration() {
  config::Declaration declaration = config::declaration<TrainerConfig>();
  declaration.add_section("training", config::declaration<TrainingConfig>(),
                          "how long, how large a step, what bounds it");
  declaration.add_section("about", config::declaration<AboutConfig>(),
                          "for people; training reads none of it");
  return declaration;
}

void add_registered_sections(config::Declaration& declaration) {
  const auto add = [&](config::Choice choice, const char* meaning, const char* fallback) {
    choice.meaning = meaning;
    choice.default_name = fallback;
    const std::string section = choice.kind;
    declaration.add_choice(section, std::move(choice));
  };
  add(registered_choice<AnyTask>(), "what is learned from which data", "");
  add(registered_choice<ModelBase>(), "what learns it", "");
  declare_optimizer(declaration);
  declaration.add_field(schedule_field());
  declare_optimizers(declaration);
  declaration.add_check(unknown_metrics);
  declaration.add_check(contradicted_guards);
  // A program without any launcher trains in its one process.
  if (!Registry<Launcher>::instance().table().names().empty()) {
    add(registered_choice<Launcher>(),
        "who starts the ranks; local: the launcher that has started this process, else the process "
        "itself; another name forces it (docs/launch.md)",
        "local");
  }
}

}  // namespace phalanx
