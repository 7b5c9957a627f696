// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace phalanx::config {

/// A number read from text, or why the text is none ("is not an integer; write 1000").
template <class Number>
struct Parsed {
  std::optional<Number> value;
  std::string problem;
};

/// Strict integers of YAML 1.2's core schema: decimal without leading zeros, 0x and 0o with their
/// prefix. Refuses overflow, separators, reals (1e3: with the hint to write 1000).
Parsed<std::int64_t> parse_integer(std::string_view text);

/// Strict reals of YAML 1.2's core schema: decimal, with or without point and exponent (1e-4 is
/// one);
/// `.inf`, `-.inf` and `.nan` are read as such. Refuses what overflows or underflows a double.
Parsed<double> parse_real(std::string_view text);

/// `true` or `false`. Refuses yes, no, on, off, 1, 0 and other spellings, with the hint what to
/// write.
Parsed<bool> parse_boolean(std::string_view text);

/// The shortest decimal that reads back to the same double and that every YAML reader takes for a
/// real: "0.0", "1.0e-04", ".inf".
std::string print_real(double value);

}  // namespace phalanx::config
