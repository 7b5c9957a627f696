// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// The largest of the numbers that optimizers multiply weights and gradients by, and the largest
/// learning rate: the product of any two of them is finite in float32.
inline constexpr double kLargestFactor = 1e10;
inline constexpr double kLargestLearningRate = 1e28;

}  // namespace phalanx
