// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/interval.h"

#include <string>

#include "trainer/config/syntax/quantity.h"
#include "trainer/config/tree/binding.h"
#include "trainer/config/tree/declaration.h"

namespace phalanx::config {

namespace {

using std::chrono::milliseconds;

constexpr double kLongest = 1e12;  // seconds: 30000 years

Parsed<milliseconds> parse_interval(const std::string& text) {
  const auto out_of_range = [&text]() -> Parsed<milliseconds> {
    return {std::nullopt, "'" + text + "' is out of range"};
  };
  if (const auto seconds = parse_real(text).value) {
    const bool is_in_range = *seconds > 0 && *seconds <= kLongest;  // not NaN
    if (!is_in_range) return out_of_range();
    // Up, so that no time > 0 becomes none.
    return {std::chrono::ceil<milliseconds>(std::chrono::duration<double>(*seconds)), ""};
  }
  const auto length = parse_duration(text);
  return length.value && length.value->count() == 0 ? out_of_range() : length;
}

}  // namespace

Type Binding<Interval>::type() {
  Type type;
  type.own_text = "a duration (90s, 30m, 1h30m) or a number of seconds > 0";
  type.canonical = [](const std::string& text) -> Parsed<std::string> {
    const auto length = parse_interval(text);
    if (!length.value) return {std::nullopt, length.problem};
    return {print_duration(*length.value), ""};
  };
  return type;
}

void Binding<Interval>::from_node(Interval& value, const Type&, const Node& node) {
  value.length = detail::to_duration(node);
}

Node Binding<Interval>::to_node(const Interval& value, const Type&) {
  return detail::from_duration(value.length);
}

}  // namespace phalanx::config
