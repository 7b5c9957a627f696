// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

namespace phalanx::config {

namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr std::array kThousands{Unit{"k", 1'000}, Unit{"M", 1'000'000}, Unit{"G", 1'000'000'000},
                                Unit{"T", 1'000'000'000'000}};

constexpr std::array kTimes{Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000},
                            Unit{"s", 1'000}, Unit{"ms", 1}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

/// The number that a text begins with: digits, at most one point, no sign.
std::string_view leading_number(std::string_view text) {
  std::size_t end = 0;
  bool point = false;
  while (end < text.size() && (is_digit(text[end]) || (text[end] == '.' && !point))) {
    point = point || text[end] == '.';
    ++end;
  }
  return text.substr(0, end);
}

/// A decimal times a factor; nothing when that is no number, not whole, or beyond 64 bits.
std::optional<std::int64_t> multiplied(std::string_view number, std::int64_t factor) {
  const std::size_t point = number.find('.');
  std::string digits(number.substr(0, point));
  std::int64_t divisor = 1;
  if (point != std::string_view::npos) {
    std::string_view fraction = number.substr(point + 1);
    while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
    if (fraction.size() > 15) return std::nullopt;
    for (std::size_t i = 0; i < fraction.size(); ++i) divisor *= 10;
    digits += fraction;
  }
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  const __int128 product = static_cast<__int128>(value) * factor;
  if (product % divisor != 0) return std::nullopt;
  const __int128 result = product / divisor;
  if (result > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return static_cast<std::int64_t>(result);
}

template <std::size_t count>
const Unit* find_unit(const std::array<Unit, count>& units, std::string_view name) {
  const auto found = std::find_if(units.begin(), units.end(),
                                  [name](const Unit& unit) { return unit.name == name; });
  return found == units.end() ? nullptr : &*found;
}

bool same_but_for_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

/// "100K": "; write 100k".
std::string other_case(std::string_view number, std::string_view name) {
  for (const Unit& unit : kThousands) {
    if (same_but_for_case(unit.name, name)) {
      return "; write " + std::string(number) + std::string(unit.name);
    }
  }
  return "";
}

/// What people call a unit of time elsewhere.
struct OtherName {
  std::string_view name;
  std::string_view unit;
};
constexpr std::array kOtherNames{
    OtherName{"day", "d"},    OtherName{"hr", "h"},     OtherName{"hour", "h"},
    OtherName{"min", "m"},    OtherName{"minute", "m"}, OtherName{"sec", "s"},
    OtherName{"second", "s"}, OtherName{"msec", "ms"},  OtherName{"millisecond", "ms"}};

/// The unit that a word stands for elsewhere, in the singular or plural, or empty.
std::string_view unit_called(std::string_view name) {
  for (const OtherName& other : kOtherNames) {
    const bool plural = name.ends_with('s') && name.substr(0, name.size() - 1) == other.name;
    if (name == other.name || plural) return other.unit;
  }
  return "";
}

/// "5 mins": "; write 5m".
std::string other_duration(std::string_view text) {
  std::string written;
  while (!text.empty()) {
    const std::string_view number = leading_number(text);
    text.remove_prefix(number.size());
    const auto is_unit = [](char c) { return !is_digit(c) && c != ' '; };
    while (text.starts_with(' ')) text.remove_prefix(1);
    const std::size_t end = std::find_if_not(text.begin(), text.end(), is_unit) - text.begin();
    const std::string_view name = text.substr(0, end);
    text.remove_prefix(end);
    while (text.starts_with(' ')) text.remove_prefix(1);
    std::string_view unit = unit_called(name);
    for (const Unit& known : kTimes) {
      const bool is_one_letter = name.size() == 1 && same_but_for_case(known.name, name);
      if (known.name == name || is_one_letter) unit = known.name;
    }
    if (number.empty() || unit.empty()) return "";
    written += std::string(number) + std::string(unit);
  }
  return "; write " + written;
}

}  // namespace

Parsed<std::int64_t> parse_count(std::string_view text) {
  const std::string_view sign =
      text.starts_with('-') || text.starts_with('+') ? text.substr(0, 1) : "";
  const std::string_view unsigned_text = text.substr(sign.size());
  const std::string_view number = leading_number(unsigned_text);
  const std::string_view suffix = unsigned_text.substr(number.size());
  if (number.empty() || suffix.empty()) return parse_integer(text);
  const Unit* unit = find_unit(kThousands, suffix);
  if (unit == nullptr) {
    // An exponent, separators or a base: the plain rules have their own words for those.
    const bool is_base = number == "0" && (suffix.front() == 'x' || suffix.front() == 'o');
    if (is_base || std::string_view("eE_").find(suffix.front()) != std::string_view::npos) {
      return parse_integer(text);
    }
    return {std::nullopt, quoted(text) + " is not an integer, nor one in k, M, G or T" +
                              other_case(number, suffix)};
  }
  const auto value = multiplied(number, unit->factor);
  if (!value) return {std::nullopt, quoted(text) + " is no whole number that fits in 64 bits"};
  return {sign == "-" ? -*value : *value, ""};
}

Parsed<std::chrono::milliseconds> parse_duration(std::string_view text) {
  if (text == "0") return {std::chrono::milliseconds(0), ""};
  const auto refused = [text](std::string_view why) -> Parsed<std::chrono::milliseconds> {
    return {std::nullopt, quoted(text) + std::string(why)};
  };
  if (text.empty()) return refused(" is not a duration");
  std::int64_t total = 0;
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view number = leading_number(rest);
    rest.remove_prefix(number.size());
    const std::size_t end = std::find_if(rest.begin(), rest.end(), is_digit) - rest.begin();
    const std::string_view name = rest.substr(0, end);
    rest.remove_prefix(end);
    if (!number.empty() && name.empty()) {
      return refused(" has no unit; write " + std::string(text) + "s, or " + std::string(text) +
                     "m, ...");
    }
    const Unit* unit = find_unit(kTimes, name);
    if (number.empty() || unit == nullptr) {
      return refused(" is not a duration" + other_duration(text));
    }
    if (unit->factor >= smallest) {
      return refused(" is not a duration: its units go from large to small, each once");
    }
    smallest = unit->factor;
    const auto part = multiplied(number, unit->factor);
    if (!part || __builtin_add_overflow(total, *part, &total)) {
      return refused(" is no whole number of milliseconds that fits in 64 bits");
    }
  }
  return {std::chrono::milliseconds(total), ""};
}

std::string print_duration(std::chrono::milliseconds time) {
  if (time.count() == 0) return "0s";
  const auto divides = [time](const Unit& unit) { return time.count() % unit.factor == 0; };
  const Unit& unit = *std::find_if(kTimes.begin(), kTimes.end(), divides);  // a millisecond does
  return std::to_string(time.count() / unit.factor) + std::string(unit.name);
}

}  // namespace phalanx::config
