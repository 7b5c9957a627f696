// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace phalanx {

/// Seconds since 1970.
inline double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace phalanx
