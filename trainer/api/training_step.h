// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/api/loss.h"
#include "trainer/api/state.h"

namespace phalanx {

class Ranks;

/// How a tensor is differentiated.
struct BackwardOptions {
  double weight = 1;          ///< What the tensor is multiplied by.
  std::string name = "loss";  ///< The part of the step's loss that it is logged as.
  bool retain_graph = false;  ///< For another backward pass of the same graph.
  /// Names of the run's `optimizers`: only their parameters take up gradients of this pass. Empty:
  /// all. In DDP and FSDP for a pass that reduces gradients, with none before it in the step that
  /// did not.
  std::vector<std::string> into = {};
};

/// A step of the training as a task's `training_step` runs it: forward and backward passes in the
/// task's own order, and one `update` or `skip` at the end. With several optimizers each may update
/// by itself, also more than once; at the end none has gradients left. On several ranks all run the
/// same passes and updates: what they decide by is a value that all have, as one that is summed
/// over `ranks()`.
class TrainingStep {
 public:
  virtual ~TrainingStep() = default;

  virtual const State& state() const = 0;
  /// Those that train together, each on its own micro-batches.
  virtual const Ranks& ranks() const = 0;
  /// This rank's micro-batches; the same number on each.
  virtual std::span<const std::unique_ptr<Batch>> micro_batches() const = 0;
  /// What the mean over a micro-batch's tokens is multiplied by for the step's gradient to be that
  /// of the mean over the tokens of all micro-batches of all ranks; 0 for one that does not count.
  virtual double weight_of(const Batch& batch) const = 0;

  /// The task's loss of a micro-batch, with the mixins' hooks around it. The backward pass that
  /// follows one of the last micro-batch reduces the gradients over all ranks.
  virtual Loss forward(const Batch& batch) = 0;
  /// Runs your own forward pass, which calls the model. `synchronize`: the backward passes that
  /// follow, up to the next forward pass with gradients, reduce the gradients over all ranks, those
  /// of passes before included; the last one before `update` does. Returns the tensors to go on
  /// with in place of those of `pass`. Passes may come in any order: several forward passes before
  /// a backward one, a forward pass without one, passes without gradients between.
  virtual std::vector<at::Tensor> run(c10::function_ref<std::vector<at::Tensor>()> pass,
                                      bool synchronize = true) = 0;

  /// Adds the gradients of a micro-batch's loss, times `weight_of(batch)`.
  virtual void backward(const Loss& loss, const Batch& batch) = 0;
  /// Adds the gradients of a scalar; those of the ranks become their mean. In DDP and FSDP it is
  /// computed of what `forward` or `run` gave in this step.
  virtual void backward(const at::Tensor& loss, const BackwardOptions& options = {}) = 0;

  /// Moves the weights by the gradients and drops these: clips, checks that all is finite, and has
  /// the optimizer step at the schedule's rate.
  virtual void update() = 0;
  /// The same of one of several optimizers (`optimizers.NAME` in the config): moves its parameters
  /// by their gradients and drops these. Others keep theirs. Passes and updates may follow. Throws
  /// std::logic_error for a name that the run has not.
  virtual void update(std::string_view optimizer) = 0;
  /// Drops all gradients and moves nothing more. The step counts as any other, its samples too.
  virtual void skip() = 0;

  /// Logs a value of this step: its mean over all ranks and calls, by weight. The ranks log the
  /// same names in the same order.
  virtual void log(std::string_view name, const at::Tensor& value, double weight = 1) = 0;

  /// The step of a task that has none of its own: a forward and a backward pass of each
  /// micro-batch, then the update.
  virtual void run_as_usual() = 0;
};

}  // namespace phalanx
