// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx {

/// A global tensor as one rank holds it: its name and shape, and the contiguous range
/// [begin, end) of the flattened, row-major tensor whose values are in `local`. Models, optimizers
/// and sharded wrappers give these; checkpoints take and fill them.
struct ShardedTensorView {
  std::string name;
  std::vector<int64_t> shape;
  at::ScalarType dtype;
  int64_t begin = 0;  ///< First element of the flattened tensor held here.
  int64_t end = 0;    ///< One past the last.
  at::Tensor local;   ///< end - begin contiguous elements; writes go to the owner.
  /// Ranks that hold this same range, and whose values count: this one is among them, or does not
  /// count.
  std::vector<int64_t> replicas{0};
};

/// Which part of a tensor a rank holds; as in ShardedTensorView.
struct ShardRange {
  std::vector<int64_t> shape;  ///< The shape of the whole tensor.
  int64_t begin = 0;
  int64_t end = 0;
  std::vector<int64_t> replicas{0};
};

/// The view of a tensor that one rank holds whole. `tensor` must be contiguous.
ShardedTensorView whole_tensor(std::string name, const at::Tensor& tensor);

}  // namespace phalanx
