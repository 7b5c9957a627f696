// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace phalanx {

/// How many of an action there were in a second, after a tenth of them that does not count.
inline double rate_of(int64_t count, const std::function<void(int64_t number)>& action) {
  const int64_t before = count / 10 + 1;
  for (int64_t i = 0; i < before; ++i) action(i);
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i) action(before + i);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(count) / time.count();
}

}  // namespace phalanx
