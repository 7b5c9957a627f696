// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/config/tree/scalar.h"

/// Numbers with units, as a config writes them. What a number cannot be is said as in scalar.h.
namespace phalanx::config {

/// An integer, also in thousands and so on: 100000, 100k, 1.5M, 2G, 1T (powers of 1000).
Parsed<std::int64_t> parse_count(std::string_view text);

/// A time with its unit, or several from large to small: 500ms, 90s, 5m, 1h30m, 2d, or 0.
Parsed<std::chrono::milliseconds> parse_duration(std::string_view text);
/// In the largest unit that comes out whole: "90s", "5m", "1500ms", "0s".
std::string print_duration(std::chrono::milliseconds time);

}  // namespace phalanx::config
