// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/api/model_base.h"
#include "trainer/api/optimizer.h"
#include "trainer/api/sharded_tensor_view.h"

namespace phalanx {

class ParallelEngine;

/// Every parameter of the model by its dotted name, in the order of registration; one that is
/// shared by several modules appears once, under its first name.
std::vector<NamedParameter> named_parameters(ModelBase& model);

/// The same of a module in a custom loop, as this rank holds them in `engine` (DDP, FSDP; nullptr:
/// whole): what an optimizer moves.
std::vector<NamedParameter> local_parameters(torch::nn::Module& module,
                                             const ParallelEngine* engine = nullptr);

/// Two groups, "decay" and "no decay": parameters of fewer than two dimensions (norms, biases)
/// and embeddings are not decayed. Those that require no gradient are left out; a group may be
/// empty and is then left out too. `parameter_groups` (parameter_rules.h) follows a config's rules.
std::vector<ParameterGroup> default_parameter_groups(ModelBase& model);

/// The views of all parameters and buffers, as a checkpoint takes and fills them.
std::vector<ShardedTensorView> model_views(ModelBase& model);

/// The same of a module in a custom loop, as this rank holds it in `engine`.
std::vector<ShardedTensorView> module_views(torch::nn::Module& module,
                                            const ParallelEngine* engine = nullptr);

/// The views of those parameters alone that require a gradient (`trained`), or of the others.
std::vector<ShardedTensorView> parameter_views(torch::nn::Module& module, bool trained,
                                               const ParallelEngine* engine);

/// The views of all buffers.
std::vector<ShardedTensorView> buffer_views(const torch::nn::Module& module);

/// A unit's dotted name and its number of parameters.
struct UnitSummary {
  std::string name;
  int64_t parameters = 0;
};

/// The model's units with their sizes, and last the root ("") with what lies outside them.
std::vector<UnitSummary> summarize_units(ModelBase& model);

/// Number of elements over all parameters.
int64_t count_parameters(ModelBase& model);

/// The same over those that require a gradient.
int64_t count_trained_parameters(ModelBase& model);

/// Converts parameters and buffers to double precision, in place.
void to_double(ModelBase& model);

/// Moves parameters and buffers to a device, in place.
void move_to(ModelBase& model, at::Device device);

/// Switches dropout and the like on or off.
void set_training(ModelBase& model, bool training);

/// Switches dropout and the like off for the length of a scope; afterwards every module is in the
/// mode it was in, so that a part that a task keeps in evaluation mode stays there.
class EvaluationMode {
 public:
  explicit EvaluationMode(ModelBase& model);
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;
  ~EvaluationMode();

 private:
  ModelBase& model_;
  std::vector<bool> modes_;  ///< The modules' modes in order of registration, the root's last.
};

}  // namespace phalanx
