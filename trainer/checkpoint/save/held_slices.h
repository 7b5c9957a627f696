// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"

namespace phalanx {

class Ranks;

/// A contiguous range of the elements of a tensor, or of a box of it, flattened in row-major order,
/// and who has its values.
struct HeldSlice {
  int64_t begin = 0;                            ///< First element.
  int64_t end = 0;                              ///< One past the last.
  std::vector<int64_t> holders;                 ///< Ranks, ascending; at least one.
  std::optional<TensorBox> box = std::nullopt;  ///< Nothing: the whole tensor, or a range of it.

  TensorPart part() const { return {.box = box, .begin = begin, .end = end}; }
};

/// A global tensor as the ranks hold it together.
struct HeldTensor {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  /// Without gap or overlap, by box and begin; none: it has no elements.
  std::vector<HeldSlice> slices;

  int64_t elements() const;
  /// Whether one of the slices is of a box.
  bool has_boxes() const;
};

/// Tells every rank what all hold. Each gives views of the same tensors in the same order; of a
/// range that several hold, those count that their views' `replicas` name. Throws
/// CommunicationError, and std::logic_error, on all ranks alike, where their tensors differ or
/// their ranges do not make up a tensor.
std::vector<HeldTensor> exchange_slices(const Ranks& ranks,
                                        std::span<const ShardedTensorView> views);

}  // namespace phalanx
