// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/core_times.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace phalanx {
namespace {

constexpr std::string_view kUnit = "cpu";
// user nice system idle iowait irq softirq steal; behind them guests, whose time is in user.
constexpr size_t kFields = 8;
constexpr size_t kIdle = 3;
constexpr size_t kWaitingForDisks = 4;

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

std::optional<int64_t> take_number(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  int64_t number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc()) return std::nullopt;
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  return number;
}

// The rest of the line of a hardware thread; the line of them all has a space in place of a number.
bool add_times(std::string_view line, double ticks_per_second, CoreTimes& sum) {
  for (size_t field = 0; field < kFields; ++field) {
    const auto ticks = take_number(line);
    if (!ticks) return false;
    const double seconds = static_cast<double>(*ticks) / ticks_per_second;
    sum.total += seconds;
    if (field == kIdle || field == kWaitingForDisks) sum.idle += seconds;
  }
  return true;
}

}  // namespace

std::optional<CoreTimes> core_times(std::string_view stat, std::span<const int64_t> units,
                                    double ticks_per_second) {
  CoreTimes sum;
  size_t found = 0;
  while (stat.starts_with(kUnit)) {
    std::string_view line = take_line(stat).substr(kUnit.size());
    if (line.starts_with(' ')) continue;
    const auto unit = take_number(line);
    if (!unit) return std::nullopt;
    if (std::ranges::find(units, *unit) == units.end()) continue;
    if (!add_times(line, ticks_per_second, sum)) return std::nullopt;
    ++found;
  }
  return found == units.size() ? std::optional(sum) : std::nullopt;
}

std::optional<double> cores_left(const UseOfCores& before, const UseOfCores& after, int64_t cores) {
  const double passed = after.moment - before.moment;
  const bool is_counted = after.times.total > before.times.total;
  if (passed <= 0 || !is_counted) return std::nullopt;
  // The kernel counts the time without work exactly, and that of work often by samples.
  const double idle = (after.times.idle - before.times.idle) / passed;
  const double own = std::max(after.own - before.own, 0.0) / passed;  // a process may have ended
  return std::clamp(idle + own, 0.0, static_cast<double>(cores));
}

}  // namespace phalanx
