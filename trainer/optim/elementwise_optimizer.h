// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/optim/fused_groups.h"

namespace phalanx {

/// A state that an optimizer keeps of each parameter.
struct StateKind {
  const char* name;  ///< As in checkpoints: "exp_avg".
  /// What it begins with.
  std::function<at::Tensor(const at::Tensor& parameter)> first = zero_state;
  bool is_kept = true;         ///< Whether this config has it; its lists stay empty otherwise.
  bool is_per_element = true;  ///< Or a scalar.
};

/// Counters of steps, as the fused kernels take them.
StateKind counted_steps();

/// Parameters of one dtype and device under one rule, and their states.
struct BoundParameters {
  ParameterGroup group;
  std::vector<at::Tensor> parameters;
  std::vector<std::vector<at::Tensor>> states;  ///< By kind, then by parameter.
};

/// Those of them that have a gradient in this step.
struct ActiveParameters {
  const BoundParameters& bound;
  std::vector<std::size_t> positions;  ///< In `bound`, ascending.
  std::vector<at::Tensor> gradients;

  TensorsAt parameters() const { return {bound.parameters, positions}; }
  TensorsAt state(std::size_t kind) const { return {bound.states[kind], positions}; }
  /// `weight_decay`, or 0 for parameters that do not decay.
  double decay(double weight_decay) const { return bound.group.weight_decay ? weight_decay : 0; }
};

/// Base of an optimizer that moves each element by its own gradient and states, many tensors in one
/// call: takes the parameters, keeps the states, and asks the derived class for the arithmetic.
class ElementwiseOptimizer : public Optimizer {
 public:
  int64_t states_per_element() const override;
  void bind(std::vector<ParameterGroup> groups) override;
  void step(double lr) override { step_unless({}, lr); }
  /// `skip` may be undefined: it moves.
  void step_unless(const at::Tensor& skip, double lr) override;
  std::vector<ShardedTensorView> state() override;

 protected:
  explicit ElementwiseOptimizer(std::vector<StateKind> kinds) : kinds_(std::move(kinds)) {}

  /// One update of parameters of one dtype and device, at least one; autograd records nothing.
  /// `skip` as above.
  virtual void update(const ActiveParameters& active, const at::Tensor& skip, double lr) const = 0;

  const std::vector<BoundParameters>& bound() const { return bound_; }

 private:
  std::vector<StateKind> kinds_;
  std::vector<BoundParameters> bound_;
};

}  // namespace phalanx
