// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/task_modules.h"

#include <fmt/format.h>
#include <torch/nn/module.h>

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "trainer/api/modules.h"
#include "trainer/api/task.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

constexpr const char* kChild = "task";

/// What the modules of a task are registered in.
class TaskModules : public torch::nn::Module {
 public:
  explicit TaskModules(std::vector<TaskModule> all)
      : torch::nn::Module("TaskModules"), all_(std::move(all)) {
    for (const TaskModule& each : all_) register_module(each.name, each.module);
  }

  const std::vector<TaskModule>& all() const { return all_; }

 private:
  std::vector<TaskModule> all_;
};

torch::nn::Module* task_child(ModelBase& model) {
  for (const auto& [name, child] : modules::children(model.module())) {
    if (name == kChild) return child;
  }
  return nullptr;
}

std::string named(const TaskModule& module) {
  return fmt::format("the task's module '{}'", module.name);
}

void require_name(const TaskModule& module, const std::unordered_set<std::string>& earlier) {
  if (module.name.empty() || module.name.find('.') != std::string::npos) {
    throw UserError(fmt::format("{}: a name is one part of a dotted name: not empty, without dots",
                                named(module)));
  }
  if (earlier.contains(module.name)) {
    throw UserError(
        fmt::format("the task has two modules '{}': give each a name of its own", module.name));
  }
  if (!module.module) throw UserError(named(module) + " is null: build_modules makes it first");
}

/// The modules and parameters that are taken, by the model or by earlier modules of the task.
class Taken {
 public:
  explicit Taken(torch::nn::Module& model) {
    modules_[&model] = "the model itself";
    for (const auto& [name, module] : modules::descendants(model)) {
      modules_.emplace(module, fmt::format("the model's '{}'", name));
    }
    for (const auto& [name, tensor] : modules::named_parameters(model)) {
      parameters_.emplace(tensor.unsafeGetTensorImpl(),
                          Parameter{.owner = fmt::format("the model's '{}'", name)});
    }
  }

  void add(const TaskModule& added) {
    std::vector<std::pair<torch::nn::Module*, std::string>> within{
        {added.module.get(), fmt::format("'{}{}'", kTaskPrefix, added.name)}};
    for (const auto& [name, module] : modules::descendants(*added.module)) {
      within.emplace_back(module, fmt::format("'{}{}.{}'", kTaskPrefix, added.name, name));
    }
    for (const auto& [module, name] : within) {
      const auto taken = modules_.find(module);
      if (taken == modules_.end()) continue;
      throw UserError(
          fmt::format("{}: {} is {}; a module belongs to one of them: copy it, or "
                      "share its parameters alone",
                      named(added), name, taken->second));
    }
    for (const auto& [name, tensor] : modules::named_parameters(*added.module)) {
      const auto taken = parameters_.find(tensor.unsafeGetTensorImpl());
      if (taken == parameters_.end() || taken->second.is_trained == added.is_trained) continue;
      throw UserError(fmt::format(
          "{} shares its parameter '{}' with {}, and only one of the two is trained: copy it",
          named(added), name, taken->second.owner));
    }
    for (const auto& [module, name] : within) modules_.emplace(module, name);
    for (const auto& [name, tensor] : modules::named_parameters(*added.module)) {
      parameters_.emplace(tensor.unsafeGetTensorImpl(),
                          Parameter{.owner = named(added), .is_trained = added.is_trained});
    }
  }

 private:
  struct Parameter {
    std::string owner;
    bool is_trained = true;
  };
  std::unordered_map<const torch::nn::Module*, std::string> modules_;
  std::unordered_map<const at::TensorImpl*, Parameter> parameters_;
};

void freeze(torch::nn::Module& module) {
  for (at::Tensor& parameter : modules::parameters(module)) parameter.set_requires_grad(false);
  modules::set_training(module, false);
}

}  // namespace

std::string_view task_module_of(std::string_view name) {
  name.remove_prefix(kTaskPrefix.size());
  return name.substr(0, name.find('.'));
}

void require_no_task_child(ModelBase& model) {
  if (task_child(model) == nullptr) return;
  throw UserError(
      "the model has a module 'task', which is what the modules of a task are registered as: "
      "register it by another name, NEW; checkpoint.load_from with "
      "checkpoint.load_prefixes={task.: NEW.} takes its weights from a checkpoint that was written "
      "before");
}

void add_task_modules(ModelBase& model, AnyTask& task) {
  require_no_task_child(model);
  std::vector<TaskModule> all = task.build_modules(model);
  if (all.empty()) return;
  std::unordered_set<std::string> names;
  Taken taken(model.module());
  for (const TaskModule& each : all) {
    require_name(each, names);
    taken.add(each);
    names.insert(each.name);
  }
  for (const TaskModule& each : all) {
    if (!each.is_trained) freeze(*each.module);
  }
  model.module().register_module(kChild, std::make_shared<TaskModules>(std::move(all)));
}

std::vector<TaskModule> task_modules(ModelBase& model) {
  const auto* const found = dynamic_cast<const TaskModules*>(task_child(model));
  return found == nullptr ? std::vector<TaskModule>() : found->all();
}

std::vector<std::string> describe_task_modules(ModelBase& model) {
  std::vector<std::string> lines;
  for (const TaskModule& each : task_modules(model)) {
    int64_t elements = 0;
    std::unordered_set<const at::TensorImpl*> seen;
    for (const at::Tensor& parameter : modules::parameters(*each.module)) {
      if (seen.insert(parameter.unsafeGetTensorImpl()).second) elements += parameter.numel();
    }
    lines.push_back(fmt::format("{}: {} parameters{}", each.name, elements,
                                each.is_trained ? "" : ", not trained"));
  }
  return lines;
}

}  // namespace phalanx
