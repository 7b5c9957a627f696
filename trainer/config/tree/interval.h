// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "trainer/config/tree/forward.h"

namespace phalanx::config {

/// A time > 0 that a config gives as a duration ("30m", "1h30m") or as a number of seconds (1800,
/// 0.5), for fields that took seconds alone once. It is printed as a duration.
struct Interval {
  std::chrono::milliseconds length{1};
};

template <>
struct Binding<Interval> {
  static Type type();
  static void from_node(Interval& value, const Type& type, const Node& node);
  static Node to_node(const Interval& value, const Type& type);
};

}  // namespace phalanx::config
