// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/build_trainer.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "trainer/api/lr_scheduler.h"
#include "trainer/api/model_base.h"
#include "trainer/api/optimizer.h"
#include "trainer/api/parameter_rules.h"
#include "trainer/api/task.h"
#include "trainer/api/task_modules.h"
#include "trainer/base/joined.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/load/task_tensors.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/training_config.h"
#include "trainer/memory/deferred_init.h"
#include "trainer/optim/optimizer_section.h"
#include "trainer/plan/largest_tensor.h"
#include "trainer/plan/memory_needs.h"
#include "trainer/precision/numerics.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"
#include "trainer/run/products.h"
#include "trainer/step/out_of_memory.h"
#include "trainer/tensors/error_text.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

// Before anything is built: a model can take minutes and gigabytes.
void require_interface(const config::Node& resolved) {
  const auto& task = chosen_name<AnyTask>(resolved);
  const auto& model = chosen_name<ModelBase>(resolved);
  const std::string_view needed = Registry<AnyTask>::instance().at(task).required_interface;
  const auto& models = Registry<ModelBase>::instance();
  const auto offers = [&](const std::string& name) {
    const auto& offered = models.at(name).interfaces;
    return std::find(offered.begin(), offered.end(), needed) != offered.end();
  };
  if (offers(model)) return;
  std::vector<std::string> fitting = models.table().names();
  std::erase_if(fitting, [&](const std::string& name) { return !offers(name); });
  throw UserError("task '" + task + "' drives models with the interface " + std::string(needed) +
                  ", which model '" + model + "' does not have; models that do: " +
                  (fitting.empty() ? "none" : joined(fitting)));
}

// Adapters freeze the model alone: the task's modules are trained beside them.
std::shared_ptr<ModelBase> make_model(const RunPlan& plan, const config::Node& resolved,
                                      AnyTask* task) {
  auto model = make_chosen<ModelBase>(resolved);
  if (plan.adapt_model) plan.adapt_model(*model);
  if (task == nullptr) {
    require_no_task_child(*model);
  } else {
    add_task_modules(*model, *task);
  }
  return model;
}

// `task`: nullptr where the model is used alone. A tensor asks for its memory before it is known
// that its values come later.
std::shared_ptr<DeferredInit> record_model(const RunPlan& plan, const config::Node& resolved,
                                           AnyTask* task, std::shared_ptr<ModelBase>& model) {
  try {
    return DeferredInit::record([&] { model = make_model(plan, resolved, task); });
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    throw UserError(
        "the model does not fit into memory, which has no room for one of its tensors (" +
        error_text(error) + "); its largest sizes are " +
        largest_sizes(*chosen_section<ModelBase>(resolved)) + ": lower them");
  }
}

// nullptr where the task owns none.
std::shared_ptr<AnyTask> task_with_modules(const config::Node& resolved) {
  const auto& tasks = Registry<AnyTask>::instance();
  if (!tasks.at(chosen_name<AnyTask>(resolved)).has_modules) return nullptr;
  require_interface(resolved);
  return make_chosen<AnyTask>(resolved);
}

}  // namespace

void check_parameters(const RunPlan& plan, const config::Node& resolved, bool begins_anew) {
  const ParameterRules rules = parameter_rules(*chosen_section<Optimizer>(resolved));
  const auto task = task_with_modules(resolved);
  if (!plan.adapt_model && !task && rules.is_plain() && rules.freeze.patterns.empty()) return;
  std::shared_ptr<ModelBase> model;
  record_model(plan, resolved, task.get(), model);  // whose values are never drawn
  freeze_parameters(*model, rules);
  parameter_groups(*model, rules);
  if (!begins_anew) return;
  for (const TaskModule& module : task_modules(*model)) {
    if (module.load_from) sources_of(module);
  }
}

RunPlan plan_of(const TrainerEntry& entry, const config::Node& resolved) {
  RunPlan plan;
  plan.numerics = training_config(resolved).numerics();
  entry.fill_plan(resolved, plan);
  return plan;
}

std::unique_ptr<AnyTrainer> build_trainer(const TrainerEntry& entry, const RunPlan& plan,
                                          const config::Node& resolved, const World& world,
                                          Purpose purpose) {
  const bool has_task = chosen_section<AnyTask>(resolved) != nullptr;
  if (has_task) require_interface(resolved);
  for (const RunPlan::Check& check : plan.checks) check(plan, world.ranks());
  use_products(plan, world.ranks());
  Numerics numerics = plan.numerics;
  numerics.changing_shapes = purpose != Purpose::training;
  use_numerics(numerics);
  seed_everything(static_cast<uint64_t>(training_config(resolved).seed), world.device());
  TrainerSetup setup;
  setup.config = std::make_shared<const config::Node>(resolved);
  setup.ranks = world.ranks();
  setup.device = world.device();
  setup.purpose = purpose;
  if (has_task) setup.components.task = make_chosen<AnyTask>(resolved);
  setup.deferred_init =
      record_model(plan, resolved, setup.components.task.get(), setup.components.model);
  if (purpose == Purpose::training) {
    const config::Node& section = *chosen_section<Optimizer>(resolved);
    setup.components.optimizer = make_optimizer(section);
    setup.parameter_rules = parameter_rules(section);
    freeze_parameters(*setup.components.model, setup.parameter_rules);
    setup.components.lr_scheduler = make_chosen<LrScheduler>(resolved);
    require_memory(plan, *setup.components.model, *chosen_section<ModelBase>(resolved),
                   *setup.components.optimizer,
                   config::read<TrainerConfig>(resolved).use_double_weight_precision, world.ranks(),
                   world.device());
  }
  return entry.make(std::move(setup));
}

}  // namespace phalanx
