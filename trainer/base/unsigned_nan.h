// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

namespace phalanx {

/// A number to be formatted; a NaN without its sign. The sign says nothing, x86 sets it on every
/// NaN that it makes, and {fmt} would write "-nan".
inline double unsigned_nan(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

}  // namespace phalanx
