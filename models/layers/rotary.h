// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>

#include "models/layers/rotary_scaling.h"

namespace phalanx {

/// The angles of places, as their cosines and sines: [batch or 1, 1, length, width / 2].
struct Rotation {
  at::Tensor cosine;
  at::Tensor sine;

  /// For the hooks of units (tensors_in.h).
  auto tensors() { return std::tie(cosine, sine); }
};

/// Rotary position embeddings (Su et al. 2021) for heads of `width` numbers, an even number. They
/// have no parameters.
class RotaryPositions {
 public:
  RotaryPositions(int64_t width, double base, std::optional<RotaryScaling> scaling);

  /// The rotation of `positions` (int64 [length] or [batch, length]), in the dtype of the states
  /// that it is for; the angles are computed in float32, or float64 if that is the dtype.
  Rotation rotation(const at::Tensor& positions, at::ScalarType dtype) const;

 private:
  int64_t width_;
  double base_;
  std::optional<RotaryScaling> scaling_;
};

/// Turns each pair (i, i + width / 2) of a head's numbers: `heads` is [batch, heads, length,
/// width].
at::Tensor rotate(const at::Tensor& heads, const Rotation& rotation);

}  // namespace phalanx
