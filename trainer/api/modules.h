// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

/// What Phalanx asks of a torch::nn::Module, compiled once: its header adds nine seconds to the
/// compilation of a source. Names and orders are those of torch::nn::Module's own methods.
namespace phalanx {
class AdaptableModule;
class HookedModule;
class Unit;
}  // namespace phalanx

namespace phalanx::modules {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;
using NamedModules = std::vector<std::pair<std::string, torch::nn::Module*>>;

/// The modules registered in this one, by their names in it.
NamedModules children(torch::nn::Module& module);
/// All modules within this one, by dotted names, without itself; one that is registered in several
/// places appears for each.
NamedModules descendants(torch::nn::Module& module);

/// The parameters that the module has itself, by their names in it.
NamedTensors own_parameters(const torch::nn::Module& module);
/// Its parameters and those of the modules within it, by dotted names; one that several modules
/// share appears for each.
NamedTensors named_parameters(const torch::nn::Module& module);
std::vector<at::Tensor> parameters(const torch::nn::Module& module);
/// The same of its buffers.
NamedTensors named_buffers(const torch::nn::Module& module);
std::vector<at::Tensor> buffers(const torch::nn::Module& module);

/// "Block" of "phalanx::gpt2::BlockImpl".
std::string class_name(const torch::nn::Module& module);
/// The module as one with hooks, or as a unit; nullptr for another one.
HookedModule* as_hooked(torch::nn::Module& module);
Unit* as_unit(torch::nn::Module& module);
/// The same as one that adapters can be trained beside.
AdaptableModule* as_adaptable(torch::nn::Module& module);
/// The weight of a torch::nn::Embedding; undefined for other modules.
at::Tensor embedding_weight(const torch::nn::Module& module);
/// Those of all modules within this one.
std::unordered_set<const at::TensorImpl*> embedding_weights(torch::nn::Module& root);

/// Converts or moves parameters and buffers, in place.
void convert_to(torch::nn::Module& module, at::ScalarType dtype);
void move_to(torch::nn::Module& module, at::Device device);

/// Whether it computes as in training (dropout, batch statistics), not as in evaluation.
bool is_training(const torch::nn::Module& module);
/// Sets it for the module and all modules within it.
void set_training(torch::nn::Module& module, bool training);

}  // namespace phalanx::modules
