// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// The largest learning rate, and the largest of the numbers that optimizers multiply weights and
/// gradients by: the product of any two of them is finite in float32.
inline constexpr double kLargestFactor = 1e10;

}  // namespace phalanx
