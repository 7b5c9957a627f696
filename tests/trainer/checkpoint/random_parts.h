// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"

namespace phalanx {

/// A tensor whose values follow from their places.
struct KnownTensor {
  std::string name;
  std::vector<int64_t> shape;
  at::ScalarType dtype = at::kFloat;

  at::Tensor values() const;
  /// The values of a part, flat: by LibTorch's own slices of the whole.
  at::Tensor values(const TensorPart& part) const;
};

/// A tensor of up to three dimensions, with sizes 0 and 1 among them; a few have more bytes than a
/// piece.
KnownTensor random_tensor(std::mt19937& random, std::string name);

/// At most `most` parts that make up a tensor: boxes, and ranges of them; some may be empty.
std::vector<TensorPart> random_cover(std::mt19937& random, const std::vector<int64_t>& shape,
                                     int64_t most);

/// Any range of any box.
TensorPart random_part(std::mt19937& random, const std::vector<int64_t>& shape);

/// The view of a part, with its values; where it is all of a box at times with other strides than
/// row-major ones.
ShardedTensorView random_view(std::mt19937& random, const KnownTensor& tensor,
                              const TensorPart& part);

/// What one of the ranks holds of a tensor that all of them hold together, some of them the same
/// as others, some nothing. All draw the same numbers.
ShardedTensorView random_share(std::mt19937& random, const KnownTensor& tensor, int64_t rank,
                               int64_t ranks);

}  // namespace phalanx
