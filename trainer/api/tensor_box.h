// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace phalanx {

/// A part of a tensor: along each dimension, `sizes` indices from `offsets` on. Columns of a matrix
/// are one, rows another.
struct TensorBox {
  std::vector<int64_t> offsets;
  std::vector<int64_t> sizes;

  int64_t elements() const;
  bool operator==(const TensorBox&) const = default;
};

/// The contiguous range [begin, end) of the elements of a box, flattened in row-major order.
struct BoxRange {
  TensorBox box;
  int64_t begin = 0;
  int64_t end = 0;
};

/// The box that is all of a tensor.
TensorBox whole_box(std::span<const int64_t> shape);

/// Whether a box has the dimensions of a tensor, and ends nowhere beyond it.
bool lies_in(const TensorBox& box, std::span<const int64_t> shape);

/// The place of the first element of `inner` among those of `outer`, flattened. It lies there.
int64_t place_in(const TensorBox& outer, const TensorBox& inner);

/// The boxes that make up a range, in its order: at most two a dimension.
std::vector<TensorBox> boxes_of(const BoxRange& range);

/// The boxes of what two ranges of one tensor share, without empty ones: those that make up
/// `first`, in their order, each with those of `second`.
std::vector<TensorBox> shared_boxes(const BoxRange& first, const BoxRange& second);

/// Which part of a tensor a rank holds: a range of a box.
struct TensorPart {
  std::optional<TensorBox> box;  ///< Nothing: the whole tensor.
  int64_t begin = 0;
  int64_t end = 0;

  BoxRange in(std::span<const int64_t> shape) const;
  bool operator==(const TensorPart&) const = default;
};

/// The same part as a range of the whole tensor, where its box is contiguous there (as rows are);
/// else as it was.
TensorPart without_needless_box(std::span<const int64_t> shape, TensorPart part);

/// What keeps parts from making up a tensor, each element in one of them, as the end of a sentence:
/// "overlap", "hold 4 of its 6 elements", "are too many to compare". Empty: nothing. Each lies in
/// the tensor. Takes a second at the most, whatever the parts.
std::string fault_of_cover(std::span<const int64_t> shape, std::span<const BoxRange> parts);

}  // namespace phalanx
