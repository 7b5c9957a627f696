// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/modules.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>

#include <string_view>

#include "trainer/api/adaptable_module.h"
#include "trainer/api/units.h"

namespace phalanx::modules {
namespace {

NamedTensors pairs(const torch::OrderedDict<std::string, at::Tensor>& tensors) {
  NamedTensors result;
  result.reserve(tensors.size());
  for (const auto& item : tensors) result.emplace_back(item.key(), item.value());
  return result;
}

NamedModules pairs(const torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>>& all) {
  NamedModules result;
  result.reserve(all.size());
  for (const auto& item : all) result.emplace_back(item.key(), item.value().get());
  return result;
}

}  // namespace

NamedModules children(torch::nn::Module& module) { return pairs(module.named_children()); }

NamedModules descendants(torch::nn::Module& module) {
  return pairs(module.named_modules("", /*include_self=*/false));
}

NamedTensors own_parameters(const torch::nn::Module& module) {
  return pairs(module.named_parameters(/*recurse=*/false));
}

NamedTensors named_parameters(const torch::nn::Module& module) {
  return pairs(module.named_parameters());
}

std::vector<at::Tensor> parameters(const torch::nn::Module& module) { return module.parameters(); }

NamedTensors named_buffers(const torch::nn::Module& module) {
  return pairs(module.named_buffers());
}

std::vector<at::Tensor> buffers(const torch::nn::Module& module) { return module.buffers(); }

std::string class_name(const torch::nn::Module& module) {
  std::string name = module.name();
  if (const std::size_t colon = name.rfind("::"); colon != std::string::npos) {
    name.erase(0, colon + 2);
  }
  constexpr std::string_view kImpl = "Impl";
  if (name.ends_with(kImpl)) name.resize(name.size() - kImpl.size());
  return name;
}

HookedModule* as_hooked(torch::nn::Module& module) { return dynamic_cast<HookedModule*>(&module); }

Unit* as_unit(torch::nn::Module& module) { return dynamic_cast<Unit*>(&module); }

AdaptableModule* as_adaptable(torch::nn::Module& module) {
  return dynamic_cast<AdaptableModule*>(&module);
}

at::Tensor embedding_weight(const torch::nn::Module& module) {
  const auto* const embedding = module.as<torch::nn::EmbeddingImpl>();
  return embedding == nullptr ? at::Tensor() : embedding->weight;
}

std::unordered_set<const at::TensorImpl*> embedding_weights(torch::nn::Module& root) {
  std::unordered_set<const at::TensorImpl*> weights;
  for (const auto& [name, module] : descendants(root)) {
    const at::Tensor weight = embedding_weight(*module);
    if (weight.defined()) weights.insert(weight.unsafeGetTensorImpl());
  }
  return weights;
}

void convert_to(torch::nn::Module& module, at::ScalarType dtype) { module.to(dtype); }

void move_to(torch::nn::Module& module, at::Device device) { module.to(device); }

bool is_training(const torch::nn::Module& module) { return module.is_training(); }

void set_training(torch::nn::Module& module, bool training) { module.train(training); }

}  // namespace phalanx::modules
