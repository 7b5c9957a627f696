// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx {

/// The largest sizes that the fields of models take: above all that was ever trained, and so small
/// that the number of elements of no tensor overflows and a model is described in seconds. Whether
/// a model of such sizes fits into memory is checked when it is built.
inline constexpr int64_t kLargestVocabulary = int64_t{1} << 24;
inline constexpr int64_t kLongestSequence = int64_t{1} << 27;  ///< In tokens.
inline constexpr int64_t kMostBlocks = 2048;
inline constexpr int64_t kWidestStates = int64_t{1} << 18;  ///< The width of the residual stream.
inline constexpr int64_t kWidestHiddenLayer = int64_t{1} << 20;  ///< Inside a block.
inline constexpr int64_t kMostHeads = int64_t{1} << 12;
inline constexpr int64_t kWidestHead = int64_t{1} << 12;

/// The largest spread of initial weights.
inline constexpr double kLargestSpread = 1e10;

}  // namespace phalanx
