// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/tensor_box.h"

namespace phalanx {

/// A global tensor as one rank holds it: its name and shape, a box of it, and the contiguous range
/// [begin, end) of the box's elements, flattened in row-major order, whose values are in `local`.
/// Models, optimizers and sharded wrappers give these; checkpoints take and fill them.
struct ShardedTensorView {
  std::string name;
  std::vector<int64_t> shape;
  at::ScalarType dtype;
  std::optional<TensorBox> box = std::nullopt;  ///< Nothing: the whole tensor.
  int64_t begin = 0;                            ///< First element of the box held here.
  int64_t end = 0;                              ///< One past the last.
  /// end - begin elements, in row-major order of its own indices, whatever its strides are (those
  /// of channels-last, say); writes go to the owner.
  at::Tensor local;
  /// Ranks that hold this same range, and whose values count: this one is among them, or does not
  /// count.
  std::vector<int64_t> replicas{0};

  TensorPart part() const { return {.box = box, .begin = begin, .end = end}; }
};

/// Which part of a tensor a rank holds; as in ShardedTensorView.
struct ShardRange {
  std::vector<int64_t> shape;  ///< The shape of the whole tensor.
  std::optional<TensorBox> box = std::nullopt;
  int64_t begin = 0;
  int64_t end = 0;
  std::vector<int64_t> replicas{0};
};

/// The view of a tensor that one rank holds whole. Throws std::logic_error where elements of it
/// share memory (`expand`): it cannot be filled.
ShardedTensorView whole_tensor(std::string name, const at::Tensor& tensor);

}  // namespace phalanx
