// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx::compute {

/// A weight [out, in] of a model, as a linear layer multiplies with it.
struct WeightShape {
  int64_t out = 0;
  int64_t in = 0;
};

}  // namespace phalanx::compute
