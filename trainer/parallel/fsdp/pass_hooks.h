// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "trainer/api/module_hook.h"
#include "trainer/parallel/fsdp/open_passes.h"
#include "trainer/parallel/fsdp/schedule.h"
#include "trainer/parallel/fsdp/sharded_unit.h"

namespace phalanx::fsdp {

/// What the model calls around its units' forward passes, and autograd around their backward
/// passes: says to the schedule where the pass is.
class PassHooks {
 public:
  /// The schedule outlives it. `input_dtype`: floating-point inputs of units are cast to it.
  PassHooks(Schedule& schedule, std::optional<at::ScalarType> input_dtype);

  /// The model and autograd call `self`, which is this, for as long as it lives: a unit that is
  /// called later throws std::logic_error.
  void attach(const std::vector<std::unique_ptr<ShardedUnit>>& units,
              std::weak_ptr<PassHooks> self);

  /// A forward pass begins, or another use of the model.
  void begin_pass();
  /// The model's result, whose gradient begins a backward pass.
  void watch_loss(const at::Tensor& loss);
  /// Backward passes so far.
  int64_t backward_passes() const { return backward_passes_; }
  /// Around a unit's forward.
  std::vector<at::Tensor> around_unit(ShardedUnit& unit, std::vector<at::Tensor> inputs,
                                      const ModuleForward& forward);

 private:
  void cast_inputs(std::vector<at::Tensor>& inputs) const;
  void watch_inputs(ShardedUnit& unit, std::vector<at::Tensor>& inputs);
  void watch_results(ShardedUnit& unit, std::vector<at::Tensor>& results);
  // Whatever of a backward pass comes first begins it.
  void enter_backward(const std::shared_ptr<ForwardPass>& pass);

  Schedule& schedule_;
  std::optional<at::ScalarType> input_dtype_;
  std::weak_ptr<PassHooks> self_;
  OpenPasses passes_;
  std::shared_ptr<ForwardPass> pass_;  ///< The newest.
  /// What units have taken and given in this pass; not owned, only compared.
  std::unordered_set<const at::TensorImpl*> watched_;
  int task_ = -1;  ///< Autograd's number of the backward pass that has begun last.
  int64_t backward_passes_ = 0;
};

}  // namespace phalanx::fsdp
