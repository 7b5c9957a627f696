#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace phalanx {

/// One micro-batch of one rank. A task derives its own and adds its tensors.
struct Batch {
  Batch() = default;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  virtual ~Batch() = default;

  /// All its tensors, so that they can be brought to where the model is.
  virtual std::vector<at::Tensor*> tensors() = 0;

  /// Those of floating point that go into the model outside of its units: a model that is sharded
  /// in lower precision computes in that. Targets and weights stay as they are.
  virtual std::vector<at::Tensor*> model_inputs() { return {}; }

  int64_t samples =
      0;  ///< Samples in this micro-batch that count: 0 on a rank that only takes part.
  int64_t tokens = 0;  ///< Terms the mean loss is taken over: target tokens, or samples where a
                       ///< task has no tokens; above 0 in every step. Weights this micro-batch
                       ///< in the step's loss.
};

/// Brings a micro-batch's tensors to a device; on a GPU the copies are ordered before what is
/// computed there next.
void move_to(Batch& batch, at::Device device);

/// Casts a micro-batch's inputs.
void cast_inputs(Batch& batch, at::ScalarType dtype);

}  // namespace phalanx
