// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/parameters.h"

#include <unordered_set>

#include "trainer/api/adaptable_module.h"
#include "trainer/api/modules.h"
#include "trainer/api/parallel_engine.h"
#include "trainer/api/parameter_rules.h"
#include "trainer/api/units.h"

namespace phalanx {
namespace {

using Tensors = std::unordered_set<const at::TensorImpl*>;

// Weights of embeddings and of heads: tables with a row a token.
Tensors tables(torch::nn::Module& root) {
  Tensors weights = modules::embedding_weights(root);
  for (const auto& [name, module] : modules::descendants(root)) {
    const AdaptableModule* const layer = modules::as_adaptable(*module);
    if (layer == nullptr || layer->takes_adapter()) continue;
    for (const auto& [key, tensor] : modules::own_parameters(*module)) {
      weights.insert(tensor.unsafeGetTensorImpl());
    }
  }
  return weights;
}

}  // namespace

std::vector<NamedParameter> named_parameters(ModelBase& model) {
  return local_parameters(model.module());
}

std::vector<NamedParameter> local_parameters(torch::nn::Module& module,
                                             const ParallelEngine* engine) {
  std::vector<NamedParameter> parameters;
  const Tensors of_tokens = tables(module);
  Tensors seen;
  for (auto& [name, tensor] : modules::named_parameters(module)) {
    if (seen.insert(tensor.unsafeGetTensorImpl()).second) {
      NamedParameter whole{std::move(name), std::move(tensor)};
      whole.is_embedding_or_head = of_tokens.contains(whole.tensor.unsafeGetTensorImpl());
      parameters.push_back(engine == nullptr ? std::move(whole) : engine->local(whole));
    }
  }
  return parameters;
}

std::vector<ParameterGroup> default_parameter_groups(ModelBase& model) {
  return parameter_groups(model, {});
}

std::vector<ShardedTensorView> model_views(ModelBase& model) {
  return module_views(model.module());
}

std::vector<ShardedTensorView> module_views(torch::nn::Module& module,
                                            const ParallelEngine* engine) {
  std::vector<ShardedTensorView> views;
  for (const auto& parameter : local_parameters(module, engine)) {
    views.push_back(view_of(parameter));
  }
  for (auto& view : buffer_views(module)) views.push_back(std::move(view));
  return views;
}

std::vector<ShardedTensorView> parameter_views(torch::nn::Module& module, bool trained,
                                               const ParallelEngine* engine) {
  std::vector<ShardedTensorView> views;
  for (const NamedParameter& whole : local_parameters(module)) {
    // The module's own tensor says it: what a rank without a part of it holds may say another.
    if (whole.tensor.requires_grad() != trained) continue;
    views.push_back(view_of(engine == nullptr ? whole : engine->local(whole)));
  }
  return views;
}

std::vector<ShardedTensorView> buffer_views(const torch::nn::Module& module) {
  std::vector<ShardedTensorView> views;
  for (const auto& [name, tensor] : modules::named_buffers(module)) {
    views.push_back(whole_tensor(name, tensor));
  }
  return views;
}

std::vector<UnitSummary> summarize_units(ModelBase& model) {
  std::vector<UnitSummary> summary;
  std::unordered_set<at::TensorImpl*> inside;  // of any unit: units may nest or share
  int64_t outside = count_parameters(model);
  for (const auto& unit : units(model.module())) {
    std::unordered_set<at::TensorImpl*> seen;
    int64_t size = 0;
    for (const auto& parameter : modules::parameters(*unit.module)) {
      auto* const identity = parameter.unsafeGetTensorImpl();
      if (seen.insert(identity).second) size += parameter.numel();
      if (inside.insert(identity).second) outside -= parameter.numel();
    }
    summary.push_back({unit.name, size});
  }
  summary.push_back({"", outside});
  return summary;
}

int64_t count_parameters(ModelBase& model) {
  int64_t count = 0;
  for (const auto& parameter : named_parameters(model)) count += parameter.tensor.numel();
  return count;
}

int64_t count_trained_parameters(ModelBase& model) {
  int64_t count = 0;
  for (const auto& parameter : named_parameters(model)) {
    if (parameter.tensor.requires_grad()) count += parameter.tensor.numel();
  }
  return count;
}

void to_double(ModelBase& model) { modules::convert_to(model.module(), at::kDouble); }

void move_to(ModelBase& model, at::Device device) { modules::move_to(model.module(), device); }

void set_training(ModelBase& model, bool training) {
  modules::set_training(model.module(), training);
}

EvaluationMode::EvaluationMode(ModelBase& model) : model_(model) {
  torch::nn::Module& root = model.module();
  for (const auto& [name, module] : modules::descendants(root)) {
    modes_.push_back(modules::is_training(*module));
  }
  modes_.push_back(modules::is_training(root));
  set_training(model, false);
}

EvaluationMode::~EvaluationMode() {
  torch::nn::Module& root = model_.module();
  modules::set_training(root, modes_.back());  // sets all below it too, whose own modes follow
  size_t place = 0;
  for (const auto& [name, module] : modules::descendants(root)) {
    modules::set_training(*module, modes_[place++]);
  }
}

}  // namespace phalanx
