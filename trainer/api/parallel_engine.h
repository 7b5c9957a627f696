// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/clip.h"
#include "trainer/api/loss.h"
#include "trainer/api/optimizer.h"

namespace phalanx {

/// Memory that is held now, and for what: "parameters, sharded", "gradients of h.3".
struct MemoryUse {
  std::string what;
  int64_t bytes = 0;
};

/// What runs a task model's passes when many ranks train it: DDP, FSDP.
class ParallelEngine {
 public:
  virtual ~ParallelEngine() = default;

  /// Runs the forward pass of a micro-batch. Returns the loss that is differentiated in place of
  /// the task's. With `synchronize` its backward reduces the gradients over all ranks, to their
  /// mean; without it they stay this rank's own (no_sync).
  virtual Loss run(c10::function_ref<Loss()> forward, bool synchronize) = 0;

  /// The same of a forward pass that gives tensors: returns those to go on with in their place.
  virtual std::vector<at::Tensor> run_tensors(c10::function_ref<std::vector<at::Tensor>()> forward,
                                              bool synchronize) = 0;

  /// Backward passes that have come to what those two gave; none: not counted.
  virtual std::optional<int64_t> backward_passes() const { return std::nullopt; }

  /// Runs `action`, which may call the model, on all ranks alike, without a loss or gradients. An
  /// error leaves the model as it is: the next pass gives up what is still held.
  virtual void use(c10::function_ref<void()> action) { action(); }

  /// The model's buffers have been written, on each rank by itself: the next forward pass has rank
  /// 0's on all ranks, where the engine is to broadcast them. All ranks call it.
  virtual void buffers_changed() {}

  /// A parameter of the model as this rank holds it: what its optimizer moves and checkpoints keep.
  virtual NamedParameter local(const NamedParameter& parameter) const { return parameter; }

  /// The 2-norm of the gradients of the whole model, of which these parameters are this rank's. All
  /// ranks call it.
  virtual GradientNorm measure_gradients(const std::vector<NamedParameter>& parameters) const;
  /// Its total alone.
  at::Tensor gradient_norm(const std::vector<NamedParameter>& parameters) const {
    return measure_gradients(parameters).total;
  }

  /// What the inputs of a batch are cast to before the model gets them; none: nothing.
  virtual std::optional<at::ScalarType> input_dtype() const { return std::nullopt; }

  /// What it holds of the model and its gradients now, on this rank.
  virtual std::vector<MemoryUse> memory() const { return {}; }

  /// The lines that the start screen shows for it.
  virtual std::vector<std::string> description() const { return {}; }

  /// Parameters by name, in the order in which their gradients are reduced, where that is found out
  /// in training: the last bits of sums over three or more ranks depend on it. Empty: not known.
  virtual std::vector<std::string> reduction_order() const { return {}; }

  /// Before the first forward pass, on all ranks: reduces in the order that an earlier start of the
  /// run has found out. One of other parameters is left alone.
  virtual void follow_reduction_order(const std::vector<std::string>& /*names*/) {}

  /// Calls `look` while every parameter of the model has its values, on all ranks. It writes none.
  virtual void summon_full_params(const std::function<void()>& look) { look(); }
};

}  // namespace phalanx
