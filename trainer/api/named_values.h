// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// Scalars with names, in the order in which they are shown: losses, metrics.
using NamedValues = std::vector<std::pair<std::string, double>>;

/// The value called `name`, or `fallback` if none has that name.
inline double value_of(const NamedValues& values, const std::string& name, double fallback) {
  for (const auto& [key, value] : values) {
    if (key == name) return value;
  }
  return fallback;
}

}  // namespace phalanx
