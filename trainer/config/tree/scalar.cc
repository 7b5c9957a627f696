// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <system_error>

namespace phalanx::config {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  return text;
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

/// Digits with an optional point (some digit beside it) and an optional exponent.
bool is_decimal(std::string_view text) {
  text = without_sign(text);
  const std::size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos) {
    if (!all_digits(without_sign(text.substr(exponent + 1)))) return false;
    text = text.substr(0, exponent);
  }
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos) return all_digits(text);
  const std::string_view after = text.substr(point + 1);
  text = text.substr(0, point);
  return (text.empty() || all_digits(text)) && (after.empty() || all_digits(after)) &&
         !(text.empty() && after.empty());
}

template <class Number>
std::errc convert(std::string_view text, Number& value, auto... format) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, format...);
  if (result.ec != std::errc()) return result.ec;
  return result.ptr == text.data() + text.size() ? std::errc() : std::errc::invalid_argument;
}

template <class Number>
Parsed<Number> problem(std::string_view text, std::string_view rest) {
  return {std::nullopt, quoted(text) + std::string(rest)};
}

/// What to write instead of a text with separators, such as 1_000, or empty.
std::string without_separators(std::string_view text) {
  std::string plain(text);
  std::erase(plain, '_');
  return plain.size() < text.size() && all_digits(without_sign(plain)) ? plain : std::string();
}

Parsed<std::int64_t> parse_with_base(std::string_view text) {
  const int base = text[1] == 'x' ? 16 : 8;
  std::int64_t value = 0;
  const std::errc error =
      text[2] == '-' ? std::errc::invalid_argument : convert(text.substr(2), value, base);
  if (error == std::errc()) return {value, ""};
  if (error == std::errc::result_out_of_range) {
    return problem<std::int64_t>(text, " does not fit in 64 bits");
  }
  return problem<std::int64_t>(text, " is not an integer");
}

Parsed<std::int64_t> refuse_decimal(std::string_view text) {
  double real = 0;
  if (convert(text, real) == std::errc() && std::nearbyint(real) == real &&
      std::abs(real) < 0x1p53) {
    return problem<std::int64_t>(
        text, " is a real number; write " + std::to_string(static_cast<std::int64_t>(real)));
  }
  return problem<std::int64_t>(text, " is a real number, not an integer");
}

/// 010: octal to some readers, decimal to others. What to write instead.
std::string without_leading_zeros(std::string_view text) {
  const std::string_view digits = without_sign(text);
  const std::size_t start = std::min(digits.find_first_not_of('0'), digits.size() - 1);
  return (text.starts_with('-') ? "-" : "") + std::string(digits.substr(start));
}

/// The integer that a double is, in full.
std::string in_full(double integer) {
  std::array<char, 320> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), integer,
                                    std::chars_format::fixed);
  return {buffer.data(), result.ptr};
}

}  // namespace

Parsed<std::int64_t> parse_integer(std::string_view text) {
  const std::string_view digits = without_sign(text);
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'o')) {
    return parse_with_base(text);
  }
  if (!all_digits(digits)) {
    if (is_decimal(text)) return refuse_decimal(text);
    const std::string plain = without_separators(text);
    return problem<std::int64_t>(
        text, plain.empty() ? " is not an integer" : " is not an integer; write " + plain);
  }
  if (digits.size() > 1 && digits.front() == '0') {
    return problem<std::int64_t>(text, " has a leading zero; write " + without_leading_zeros(text) +
                                           " (or 0o... for an octal number)");
  }
  std::int64_t value = 0;
  if (convert(text, value) != std::errc()) {
    return problem<std::int64_t>(text, " does not fit in 64 bits");
  }
  return {value, ""};
}

Parsed<double> parse_real(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == ".inf" || text == "+.inf") return {kInfinity, ""};
  if (text == "-.inf") return {-kInfinity, ""};
  if (text == ".nan") return {std::numeric_limits<double>::quiet_NaN(), ""};
  if (!is_decimal(text)) {
    const std::string plain = without_separators(text);
    return problem<double>(
        text, plain.empty() ? " is not a real number" : " is not a real number; write " + plain);
  }
  const std::string_view digits = without_sign(text);
  const bool is_whole = all_digits(digits);
  if (is_whole && digits.size() > 1 && digits.front() == '0') {
    return problem<double>(text, " has a leading zero; write " + without_leading_zeros(text));
  }
  double value = 0;
  if (convert(text, value) != std::errc()) {
    const bool is_small = std::strtod(std::string(text).c_str(), nullptr) == 0;
    return problem<double>(text, is_small ? " is too small for a double; write 0"
                                          : " is beyond the range of a double");
  }
  if (is_whole && in_full(std::abs(value)) != digits) {
    return problem<double>(text, " has more digits than a double holds; write " + in_full(value));
  }
  return {value, ""};
}

Parsed<bool> parse_boolean(std::string_view text) {
  if (text == "true") return {true, ""};
  if (text == "false") return {false, ""};
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  constexpr std::array kTrue = {"true", "yes", "on", "y", "1"};
  constexpr std::array kFalse = {"false", "no", "off", "n", "0"};
  const auto is_lower = [&lower](const char* word) { return lower == word; };
  if (std::any_of(kTrue.begin(), kTrue.end(), is_lower)) {
    return problem<bool>(text, " is not true or false; write true");
  }
  if (std::any_of(kFalse.begin(), kFalse.end(), is_lower)) {
    return problem<bool>(text, " is not true or false; write false");
  }
  return problem<bool>(text, " is not true or false");
}

std::string print_real(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value < 0 ? "-.inf" : ".inf";
  std::array<char, 32> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), result.ptr);
  // YAML 1.1 readers take a number without a point for text (1e-4) or an integer (1).
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

}  // namespace phalanx::config
