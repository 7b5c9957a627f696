// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

inline constexpr int kFailure = 1;
inline constexpr int kUsersMistake = 2;

/// As shells count: a process that a signal has ended, or that ends because of one, has this much
/// more than the signal's number.
inline constexpr int kSignalBase = 128;

}  // namespace phalanx
