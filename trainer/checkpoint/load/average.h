// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/load/model_copy.h"
#include "trainer/checkpoint/load/slice_reader.h"

namespace phalanx {

/// Computes the mean of the weights that several checkpoints of one model hold, while a ModelCopy
/// of the first one writes it. Holds no more than a few pieces of them in memory.
class ModelAverage {
 public:
  /// Compares what the checkpoints, which must outlive this, say of themselves; reads no tensor.
  /// There is at least one. Throws UserError that lists what differs unless all hold the same
  /// tensors of a model, or of adapters of the same base. Floating point tensors may differ in
  /// their precision.
  explicit ModelAverage(std::span<const Checkpoint> checkpoints);

  // What tensors() returns refers to this.
  ModelAverage(const ModelAverage&) = delete;
  ModelAverage& operator=(const ModelAverage&) = delete;

  /// Returns the tensors for a ModelCopy of the first checkpoint, in its dtypes, which may be
  /// changed. That copy writes the mean, accumulated in float64, of a floating point tensor, and
  /// throws UserError for another tensor that is not the same in all checkpoints.
  std::vector<CopiedTensor> tensors();

 private:
  /// One of the checkpoints behind the first.
  struct Other {
    explicit Other(const Checkpoint& checkpoint);
    /// Reads as many elements as asked for, from `begin` of the flattened tensor on.
    at::Tensor read(std::string_view name, int64_t begin, int64_t count);

    const Checkpoint& checkpoint;
    std::map<std::string_view, const ManifestTensor*> by_name;  ///< The model's tensors.
    SliceReader reader;
  };

  at::Tensor mean(const ManifestTensor& tensor, int64_t begin, const at::Tensor& values);
  void require_equal(const ManifestTensor& tensor, int64_t begin, const at::Tensor& values);

  const Checkpoint& first_;
  std::deque<Other> others_;
};

}  // namespace phalanx
