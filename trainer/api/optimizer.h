// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"

namespace phalanx {

class Ranks;

/// A leaf tensor that an optimizer moves, under the name that checkpoints know.
struct NamedParameter {
  std::string name;
  at::Tensor tensor;
  /// Which part of the parameter `tensor` is, where ranks hold parts, one-dimensional and possibly
  /// empty, or replicas of all of it; none: all of it, and only rank 0's counts.
  std::optional<ShardRange> shard = std::nullopt;
  /// Of an embedding or of the head above the last layer: one row a token, no map between layers.
  bool is_embedding_or_head = false;
};

/// The parameter as a checkpoint takes and fills it.
ShardedTensorView view_of(const NamedParameter& parameter);

/// A state of an optimizer for a parameter, under the name "<parameter>.<state>": with an element
/// for each of the parameter's, or a scalar that is the same on every rank.
ShardedTensorView state_view(const NamedParameter& parameter, std::string_view state,
                             const at::Tensor& values);

/// Parameters that share one rule.
struct ParameterGroup {
  std::string label;                       ///< Shown in the log: "decay", "no decay".
  bool weight_decay = true;                ///< Whether the optimizer's weight decay applies.
  std::vector<NamedParameter> parameters;  ///< Only those that require a gradient.
  /// Which of the config's `optimizer.groups` they belong to; none: the optimizer's own fields
  /// hold.
  std::optional<std::size_t> rule = std::nullopt;
  double lr_scale = 1;  ///< What their learning rates are multiplied by.
};

/// Base of every optimizer. A derived class has a Config with a field `lr` and is constructed
/// from it; `bind` follows once, before the first step.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// The learning rate at factor 1, from the config.
  virtual double base_lr() const = 0;

  /// The ranks that train together, once, before `bind`: for an optimizer that needs more of a
  /// parameter than this rank's part. All ranks call it, and the steps.
  virtual void join(const Ranks& /*ranks*/) {}

  /// Takes the parameters and makes the state for them (moments, steps).
  virtual void bind(std::vector<ParameterGroup> groups) = 0;

  /// Elements of state that it keeps for each element of a parameter, for what a run will need.
  virtual int64_t states_per_element() const { return 0; }
  /// The same of this parameter: an optimizer that treats parameters differently overrides it.
  virtual int64_t states_of(const NamedParameter& /*parameter*/) const {
    return states_per_element();
  }

  /// One update with this learning rate. Parameters without a gradient are left alone, moments
  /// and decay included.
  virtual void step(double lr) = 0;

  /// The same on a device that the host does not wait for: nothing is moved or counted where `skip`
  /// (a float32 scalar there) is 1 rather than 0. This one waits for it; an optimizer whose kernels
  /// read it themselves keeps the device busy.
  virtual void step_unless(const at::Tensor& skip, double lr);

  /// What the trainer calls: one update at this factor of the schedule, as `step_unless` where
  /// `skip` is defined. An optimizer with several learning rates overrides it.
  virtual void step_by(double factor, const at::Tensor& skip = {});

  /// The state by name, `<parameter>.<state>` (for example `wte.weight.exp_avg`), complete from
  /// `bind` on; a checkpoint reads them and a resume fills them in place.
  virtual std::vector<ShardedTensorView> state() = 0;
};

}  // namespace phalanx
