// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "trainer/api/batch.h"
#include "trainer/step/step_parts.h"
#include "trainer/tensors/side_stream.h"

namespace phalanx {

/// Brings micro-batches to where the model is, in the dtype of its inputs. To a GPU the copies may
/// run beside what computes. A batch that is LeftOnHost gets its dtype alone. Outlives the batches
/// whose copies it has started.
class BatchTransport {
 public:
  /// The parts must outlive it.
  explicit BatchTransport(const StepParts& parts);

  /// All of it at once.
  void bring(Batch& batch) const;

  /// Starts the copies to a GPU, which run beside what computes until `join_copies`. That comes
  /// before the batch is used or freed.
  void start_copies(Batch& batch) const;
  void join_copies() const;
  /// The inputs of a batch that is where the model is, in their dtype.
  void cast(Batch& batch) const;

 private:
  const StepParts& parts_;
  std::optional<SideStream> copies_;  ///< None: the model is on the CPU.
};

}  // namespace phalanx
