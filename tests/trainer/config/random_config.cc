// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/config/random_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <regex>
#include <stdexcept>
#include <utility>

#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/resolve.h"

namespace phalanx::config {

namespace {

/// What YAML, JSON, an override or an interpolation gives a meaning of its own.
constexpr std::array kPieces = {
    "a",    "Zebra", "value_1", " ",      "   ",       "'",      "\"",   "\\",     "\\\\",   "#",
    " #",   ": ",    ":",       "- ",     "-",         "é",      "漢字", "🙂",   "\n",     "\t",
    "\x01", "\x7F",  "\u0085",  "\u2028", "\u2029",    "\uFEFF", "${",   "${a.b}", "\\${c}", "}",
    "{",    "[",     "]",       ",",      "&",         "*",      "!",    "|",      ">",      "%",
    "@",    "`",     "?",       "???",    "~",         "null",   "yes",  "no",     "on",     "true",
    "1e5",  "0x1F",  "010",     "1_000",  ".inf",      ".nan",   "<<",   "=",      "---",    "...",
    "1:30", "12",    "-3.5",    "\r",     "2001-01-01"};

/// Puts before each `${` the backslashes that make it and those before it literal.
std::string with_literal_braces(const std::string& text) {
  static const std::regex interpolation(R"((\\*)\$\{)");
  return std::regex_replace(text, interpolation, "$1$1\\$${");
}

bool resolves(const Declaration& declaration, const Node& section) {
  Diagnostics diagnostics;
  resolve(declaration, section, diagnostics);
  return diagnostics.empty();
}

std::vector<std::string> preset_names(const Declaration& declaration) {
  std::vector<std::string> names;
  for (const Preset& preset : declaration.presets()) names.push_back(preset.name);
  return names;
}

}  // namespace

Node RandomConfig::draw(const Declaration& declaration,
                        const std::map<std::string, std::string>& classes) {
  classes_ = classes;
  return section(declaration, "");
}

Node RandomConfig::section(const Declaration& declaration, const std::string& path) {
  // The more fields are given, the more a check across them refuses.
  constexpr std::array kGiven = {1.0, 0.5, 0.2, 0.1, 0.05};
  constexpr int kAttempts = 200;
  const std::size_t first = below(kGiven.size());
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    texts_have_places_ = attempt >= kAttempts / 2;
    Node drawn = section_once(declaration, path, kGiven[(first + attempt) % kGiven.size()]);
    texts_have_places_ = false;
    if (resolves(declaration, drawn)) return drawn;
  }
  throw std::runtime_error("no values of " + declaration.name() + " pass its checks");
}

Node RandomConfig::section_once(const Declaration& declaration, const std::string& path,
                                double given) {
  Node section = Node::map();
  if (!declaration.presets().empty() && chance(0.3)) {
    section.set(kPreset, Node::plain(one_of(preset_names(declaration))));
  }
  for (const Field& field : declaration.fields()) {
    const std::string field_path = join_path(path, field.name);
    const bool must = field.mandatory || classes_.contains(field_path);
    if (!must && !chance(given)) continue;
    section.set(field.name, value(field.type, field_path));
  }
  return section;
}

Node RandomConfig::choice(const Choice& choice, const std::string& path) {
  const auto fixed = classes_.find(path);
  const std::string name = fixed != classes_.end() ? fixed->second : one_of(choice.names());
  const Declaration& chosen = *choice.find(name);
  if (chance(0.2) && resolves(chosen, Node::map())) return Node::plain(name);
  if (!chosen.presets().empty() && chance(0.2)) return Node::plain(one_of(preset_names(chosen)));
  Node section = Node::map();
  const Node fields = this->section(chosen, path);
  const bool implied =
      fields.find(kPreset) != nullptr || (name == choice.default_name && !fields.entries.empty());
  if (!implied || chance(0.5)) section.set("name", Node::plain(name));
  for (const Entry& entry : fields.entries) section.entries.push_back(entry);
  return section;
}

Node RandomConfig::value(const Type& type, const std::string& path) {
  if (type.nullable && chance(0.3)) {
    return type.null_word.empty() || chance(0.3) ? Node::null() : Node::plain(type.null_word);
  }
  switch (type.kind) {
    case Type::Kind::list:
      return list(type, path);
    case Type::Kind::map:
      return map(type, path);
    case Type::Kind::section: {
      if (type.choice) return choice(*type.choice, path);
      const bool short_form = !type.section->presets().empty() && chance(0.3);
      if (short_form) return Node::plain(one_of(preset_names(*type.section)));
      return section(*type.section, path);
    }
    default:
      return scalar(type);
  }
}

Node RandomConfig::list(const Type& type, const std::string& path) {
  Node list = Node::list();
  const std::size_t size = type.size ? *type.size : below(4);
  for (std::size_t i = 0; i < size; ++i) {
    list.items.push_back(value(type.element.front(), path + "[" + std::to_string(i) + "]"));
  }
  return list;
}

Node RandomConfig::map(const Type& type, const std::string& path) {
  Node map = Node::map();
  for (std::size_t i = below(4); i > 0; --i) {
    const std::string key = chance(0.6) ? "key_" + std::to_string(below(100)) : random_text();
    map.set(key, value(type.element.front(), join_path(path, key)));
  }
  return map;
}

Node RandomConfig::scalar(const Type& type) {
  switch (type.kind) {
    case Type::Kind::boolean:
      return chance(0.5) ? Node::boolean(chance(0.5)) : Node::plain(chance(0.5) ? "true" : "false");
    case Type::Kind::integer:
      return integer(type);
    case Type::Kind::real:
      return real(type);
    case Type::Kind::duration:
      return duration(type);
    default:
      return text(type);
  }
}

std::int64_t RandomConfig::whole_number(const Range& range, std::int64_t low, std::int64_t high) {
  if (range.low) low = std::max(low, static_cast<std::int64_t>(std::ceil(*range.low)));
  if (range.high) high = std::min(high, static_cast<std::int64_t>(std::floor(*range.high)));
  if (range.low_excluded && static_cast<double>(low) == *range.low) ++low;
  if (range.high_excluded && static_cast<double>(high) == *range.high) --high;
  const auto small = static_cast<std::int64_t>(below(65));
  const auto large = std::bit_cast<std::int64_t>((std::uint64_t{random_()} << 32) | random_());
  const std::array candidates = {
      low,    high,  small,
      -small, large, low > std::numeric_limits<std::int64_t>::max() - small ? low : low + small};
  return std::clamp(one_of(candidates), low, high);
}

Node RandomConfig::integer(const Type& type) {
  using Limits = std::numeric_limits<std::int64_t>;
  const std::int64_t number = whole_number(type.range, Limits::min(), Limits::max());
  if (type.is_count && number % 1000 == 0 && chance(0.7)) {
    return Node::plain(std::to_string(number / 1000) + "k");
  }
  if (number >= 0 && chance(0.2)) return Node::plain(fmt::format("0x{:X}", number));
  return chance(0.5) ? Node::integer(number) : Node::plain(std::to_string(number));
}

Node RandomConfig::real(const Type& type) {
  const Range& range = type.range;
  while (true) {
    const double low = range.low.value_or(-1e3);
    const double high = range.high.value_or(low + 2e3);
    const double share = static_cast<double>(random_()) / 0x1p32;
    const auto bits = std::bit_cast<double>((std::uint64_t{random_()} << 32) | random_());
    const std::array candidates = {low,  high,           0.0,
                                   -0.0, 1e-3,           low + share * (high - low),
                                   bits, std::abs(bits), std::numeric_limits<double>::denorm_min()};
    const double number = one_of(candidates);
    if (!std::isfinite(number) || !range.contains(number)) continue;
    return chance(0.5) ? Node::real(number) : Node::plain(fmt::format("{:.17g}", number));
  }
}

Node RandomConfig::duration(const Type& type) {
  Range range = type.range;  // of milliseconds
  if (range.low) *range.low *= 1000;
  if (range.high) *range.high *= 1000;
  constexpr std::int64_t kLongest = std::int64_t{100} * 365 * 86'400'000;
  const std::int64_t time = whole_number(range, 0, kLongest);
  const std::int64_t minutes = time / 60'000;
  const std::int64_t rest = time % 60'000;
  if (time == 0 && chance(0.5)) return Node::plain("0");
  if (minutes > 0 && rest > 0 && chance(0.5))
    return Node::plain(fmt::format("{}m{}ms", minutes, rest));
  if (chance(0.3)) return Node::plain(fmt::format("{}.{:03}s", time / 1000, time % 1000));
  return Node::plain(fmt::format("{}ms", time));
}

Node RandomConfig::text(const Type& type) {
  if (!type.choices.empty()) {
    const std::size_t number = below(type.choices.size());
    if (type.is_numbered && chance(0.5)) return Node::integer(type.choice_values[number]);
    return Node::plain(type.choices[number]);
  }
  std::string text = random_text();
  if (type.kind == Type::Kind::path && text.empty()) text = "a/path.txt";
  // A type with values of its own takes only a word that the test knows.
  if (type.canonical && !words_.empty()) text = one_of(words_);
  return Node::string(with_literal_braces(text));
}

std::string RandomConfig::random_text() {
  if (texts_have_places_) return "{a} {b}";
  if (!words_.empty() && chance(0.3)) return one_of(words_);
  std::string text;
  for (std::size_t i = below(5); i > 0; --i) text += one_of(kPieces);
  return text;
}

}  // namespace phalanx::config
