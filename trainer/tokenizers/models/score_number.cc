// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/models/score_number.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace phalanx {
namespace {

// 10 to this power, rounded once.
double power_of_ten(int exponent) {
  const std::string text = "1e" + std::to_string(exponent);
  double power = 0;
  std::from_chars(text.data(), text.data() + text.size(), power);
  return power;
}

}  // namespace

// The digits become a whole number, which is rounded; the power of ten is taken off, and that is
// rounded again. The digits are the fewest that stand for the number, as files have them.
double score_number(double nearest) {
  constexpr int kLargestPower = 308;
  if (nearest == 0 || !std::isfinite(nearest)) return nearest;
  std::array<char, 64> text{};
  const char* const end = std::to_chars(text.data(), text.data() + text.size(), std::abs(nearest),
                                        std::chars_format::scientific)
                              .ptr;
  uint64_t digits = 0;
  int exponent = 0;
  const char* place = text.data();
  for (bool is_fraction = false; place != end && *place != 'e'; ++place) {
    if (*place == '.') {
      is_fraction = true;
      continue;
    }
    digits = digits * 10 + static_cast<uint64_t>(*place - '0');
    if (is_fraction) --exponent;
  }
  int power = 0;
  const char* const power_begin = place + (place[1] == '+' ? 2 : 1);
  std::from_chars(power_begin, end, power);
  exponent += power;
  auto number = static_cast<double>(digits);
  for (; exponent < -kLargestPower; exponent += kLargestPower)
    number /= power_of_ten(kLargestPower);
  number = exponent < 0 ? number / power_of_ten(-exponent) : number * power_of_ten(exponent);
  return std::copysign(number, nearest);
}

}  // namespace phalanx
