// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/build_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "trainer/api/lr_scheduler.h"
#include "trainer/api/model_base.h"
#include "trainer/api/modules.h"
#include "trainer/api/optimizer.h"
#include "trainer/api/optimizer_rules.h"
#include "trainer/api/task.h"
#include "trainer/api/task_modules.h"
#include "trainer/base/joined.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/load/task_tensors.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/training_config.h"
#include "trainer/memory/deferred_init.h"
#include "trainer/optim/optimizer_section.h"
#include "trainer/optim/optimizers_section.h"
#include "trainer/parallel/replicas/replica_devices.h"
#include "trainer/parallel/replicas/replicated_task.h"
#include "trainer/plan/largest_tensor.h"
#include "trainer/plan/memory_needs.h"
#include "trainer/precision/numerics.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"
#include "trainer/run/products.h"
#include "trainer/step/optimizer_part.h"
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

// Of a tensor that the memory has no room for: ", of 4096 MiB"; what LibTorch says, if that names
// no size.
std::string size_in(const std::string& error) {
  constexpr std::string_view kBefore = "tried to allocate ";
  constexpr double kMebibyte = 1024.0 * 1024.0;
  const std::size_t found = error.find(kBefore);
  double bytes = 0;
  if (found != std::string::npos) {
    const char* const begin = error.data() + found + kBefore.size();
    std::from_chars(begin, error.data() + error.size(), bytes);
  }
  return bytes > 0 ? fmt::format(", of {:.0f} MiB", bytes / kMebibyte) : " (" + error + ")";
}

// `task`: nullptr where the model is used alone. A tensor asks for its memory before it is known
// that its values come later.
std::shared_ptr<DeferredInit> record_model(const RunPlan& plan, const config::Node& resolved,
                                           AnyTask* task, std::shared_ptr<ModelBase>& model) {
  try {
    return DeferredInit::record([&] { model = make_model(plan, resolved, task); });
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    throw UserError("the model does not fit into memory, which has no room for one of its tensors" +
                    size_in(error_text(error)) + "; its largest sizes are " +
                    largest_sizes(*chosen_section<ModelBase>(resolved)) + ": lower them");
  }
}

// Before anything is launched: a replica would have to have its own modules of the task.
void require_no_modules(const config::Node& resolved) {
  const auto& task = chosen_name<AnyTask>(resolved);
  if (!Registry<AnyTask>::instance().at(task).has_modules) return;
  throw UserError("task '" + task +
                  "' has modules of its own (build_modules), of which parallel.data_parallel makes "
                  "no replicas: leave parallel.data_parallel out, or use strategy: ddp");
}

// A replica gets the memory or a copy of the model's parameters and buffers before each pass; what
// else it holds has its initial values.
void fill_without_states(ModelBase& replica, DeferredInit& values) {
  std::unordered_set<const c10::StorageImpl*> states;
  for (const at::Tensor& each : modules::parameters(replica.module())) {
    if (each.defined()) states.insert(each.storage().unsafeGetStorageImpl());
  }
  for (const at::Tensor& each : modules::buffers(replica.module())) {
    if (each.defined()) states.insert(each.storage().unsafeGetStorageImpl());
  }
  values.fill([&](const c10::StorageImpl* storage, const at::Tensor& /*values*/) {
    return !states.contains(storage);
  });
}

// They leave the random numbers where they are.
ReplicatedModel replicas_of(const RunPlan& plan, const config::Node& resolved,
                            std::shared_ptr<ModelBase> model, at::Device device) {
  ReplicatedModel replicated{.original = std::move(model),
                             .devices = replica_devices(plan.replicas, device)};
  const RngGuard random_numbers;
  for (std::size_t i = 0; i < replicated.devices.size(); ++i) {
    auto& replica = replicated.replicas.emplace_back();
    const auto values = record_model(plan, resolved, nullptr, replica);
    fill_without_states(*replica, *values);
  }
  return replicated;
}

// nullptr where the task owns none.
std::shared_ptr<AnyTask> task_with_modules(const config::Node& resolved) {
  const auto& tasks = Registry<AnyTask>::instance();
  if (!tasks.at(chosen_name<AnyTask>(resolved)).has_modules) return nullptr;
  require_interface(resolved);
  return make_chosen<AnyTask>(resolved);
}

// Whether one optimizer moves all of the model by its own fields.
bool moves_all_alike(const std::vector<OptimizerRules>& optimizers) {
  if (optimizers.size() != 1 || optimizers.front().parameters) return false;
  const ParameterRules& rules = optimizers.front().rules;
  return rules.is_plain() && rules.freeze.patterns.empty();
}

std::vector<OptimizerPart> make_optimizers(const config::Node& resolved,
                                           const std::vector<OptimizerRules>& rules) {
  std::vector<OptimizerPart> parts;
  for (const OptimizerRules& of_one : rules) {
    const config::Node& section = optimizer_section(resolved, of_one.name);
    const std::string schedule_field = schedule_path(resolved, of_one.name);
    const config::Node& schedule = *resolved.find_path(schedule_field);
    parts.push_back(
        {.rules = of_one,
         .optimizer = make_optimizer(section),
         .lr_scheduler =
             Registry<LrScheduler>::instance().at(schedule.find("name")->text).make(schedule),
         .schedule_field = schedule_field,
         .clip_grad_norm = own_clip_grad_norm(section)});
  }
  return parts;
}

StatesOf states_of(ModelBase& model, const std::vector<OptimizerPart>& parts) {
  std::vector<OptimizerRules> rules;
  for (const OptimizerPart& part : parts) rules.push_back(part.rules);
  std::unordered_map<std::string, std::shared_ptr<const Optimizer>> owners;
  const auto groups = groups_by_optimizer(model, rules);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const ParameterGroup& group : groups[i]) {
      for (const NamedParameter& each : group.parameters) owners[each.name] = parts[i].optimizer;
    }
  }
  return [owners = std::move(owners)](const NamedParameter& parameter) {
    return owners.at(parameter.name)->states_of(parameter);
  };
}

}  // namespace

void check_parameters(const RunPlan& plan, const config::Node& resolved, bool begins_anew,
                      const std::optional<int64_t>& ranks) {
  if (!plan.replicas.empty()) require_no_modules(resolved);
  const std::vector<OptimizerRules> rules = optimizer_rules(resolved);
  const auto task = task_with_modules(resolved);
  const bool is_model_checked = ranks && *ranks > 1 && plan.check_model;
  if (!plan.adapt_model && !task && !is_model_checked && moves_all_alike(rules)) return;
  std::shared_ptr<ModelBase> model;
  record_model(plan, resolved, task.get(), model);  // whose values are never drawn
  freeze_by_optimizer(*model, rules);
  groups_by_optimizer(*model, rules);
  if (is_model_checked) plan.check_model(*model, *ranks);
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
  // Where the model is used alone, ranks that share their samples in training have all of it in
  // turn, and deal the work among them.
  const bool shares_samples = plan.shares_samples && purpose != Purpose::use;
  setup.data_ranks = shares_samples ? Ranks() : world.data_ranks();
  const int64_t ranks = setup.data_ranks->world_size();
  setup.idle_ranks = shares_samples ? 0 : ranks - plan.data_ranks(ranks);
  setup.device = world.device();
  setup.purpose = purpose;
  if (has_task) setup.components.task = make_chosen<AnyTask>(resolved);
  setup.deferred_init =
      record_model(plan, resolved, setup.components.task.get(), setup.components.model);
  if (purpose == Purpose::training) {
    const std::vector<OptimizerRules> rules = optimizer_rules(resolved);
    freeze_by_optimizer(*setup.components.model, rules);
    setup.optimizers = make_optimizers(resolved, rules);
    require_memory(plan, *setup.components.model, *chosen_section<ModelBase>(resolved),
                   states_of(*setup.components.model, setup.optimizers),
                   config::read<TrainerConfig>(resolved).use_double_weight_precision, world.ranks(),
                   world.device());
    if (!plan.replicas.empty()) {
      setup.components.task =
          replicated(std::move(setup.components.task),
                     replicas_of(plan, resolved, setup.components.model, world.device()),
                     chosen_name<AnyTask>(resolved));
    }
  }
  return entry.make(std::move(setup));
}

}  // namespace phalanx
