// SPDX-License-Identifier: Apache-2.0
#include "trainer/submission/slurm_time.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace phalanx {
namespace {

constexpr std::array<int64_t, 4> kUnits{86400, 3600, 60, 1};  // days, hours, minutes, seconds

std::optional<uint32_t> whole_number(std::string_view text) {
  uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// What its first number counts.
size_t first_unit(std::string_view limit) {
  if (limit.find('-') != std::string_view::npos) return 0;
  return std::ranges::count(limit, ':') == 2 ? 1 : 2;
}

}  // namespace

std::optional<int64_t> seconds_of_limit(std::string_view limit) {
  int64_t seconds = 0;
  for (size_t unit = first_unit(limit); unit < kUnits.size(); ++unit) {
    const size_t end = limit.find_first_of("-:");
    const auto value = whole_number(limit.substr(0, end));
    if (!value) return std::nullopt;
    seconds += *value * kUnits[unit];
    if (end == std::string_view::npos) return seconds > 0 ? std::optional(seconds) : std::nullopt;
    limit.remove_prefix(end + 1);
  }
  return std::nullopt;
}

}  // namespace phalanx
