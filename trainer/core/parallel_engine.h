#pragma once

#include "trainer/core/loss.h"

namespace phalanx {

/// What stands around a task model's forward and backward when many ranks train it: DDP, FSDP.
class ParallelEngine {
 public:
  virtual ~ParallelEngine() = default;

  /// Before the forward pass of a micro-batch. With `synchronize` the backward that follows reduces
  /// the gradients over all ranks, to their mean; without it they stay this rank's own (no_sync).
  virtual void before_forward(bool synchronize) = 0;

  /// After it: the loss that is differentiated in place of the task's.
  virtual Loss after_forward(Loss loss) = 0;
};

}  // namespace phalanx
