// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "trainer/api/broken_sample.h"

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

  /// The names of `tensors()`, in their order, for errors. Optional.
  virtual std::vector<std::string_view> tensor_names() const { return {}; }

  int64_t samples = 0;  ///< Samples in this micro-batch, without broken ones.
  int64_t tokens = 0;   ///< Terms that the mean loss is taken over: target tokens, or samples where
                        ///< a task has no tokens. Weighs this micro-batch in the step's loss; above
                        ///< 0 over all micro-batches of a step.

  /// False on a rank for which nothing of an epoch is left, while others still have samples: it
  /// runs the same passes, since collectives are in them, on samples that come a second time.
  /// Tensors, `samples` and `tokens` are those of any micro-batch; the trainer leaves it out of
  /// counts, loss and gradients, and gives the model's buffers back what they held before.
  bool counts = true;

  /// The number of each sample in its data set, in the order of the rows; empty: not known. The
  /// loader sets it.
  std::vector<int64_t> sample_numbers;

  /// The samples that are left out of this micro-batch because they cannot be read. Their places in
  /// the epoch stay empty, so they count as samples, and have no tokens.
  std::vector<BrokenSample> broken;

  /// What this micro-batch adds to the step's counts.
  int64_t counted_samples() const {
    return (counts ? samples : 0) + static_cast<int64_t>(broken.size());
  }
  int64_t counted_tokens() const { return counts ? tokens : 0; }
};

/// Brings a micro-batch's tensors to a device. To a GPU the copies are enqueued on the current
/// stream; the host does not wait for those of pinned tensors.
void move_to(Batch& batch, at::Device device);

/// Puts a micro-batch's tensors into pinned memory of the host, from which a GPU copies while the
/// host goes on.
void pin(Batch& batch, at::Device gpu);

/// Casts a micro-batch's inputs.
void cast_inputs(Batch& batch, at::ScalarType dtype);

}  // namespace phalanx
