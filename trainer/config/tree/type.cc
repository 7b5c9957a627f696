// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/type.h"

#include "trainer/base/joined.h"
#include "trainer/config/tree/declaration.h"

namespace phalanx::config {

namespace {

/// A bound as one would write it: 1, 0.5, 1e-08.
std::string bound_text(double bound) {
  std::string text = print_real(bound);
  if (const std::size_t point = text.find(".0"); point != std::string::npos) {
    if (point + 2 == text.size() || text[point + 2] == 'e') text.erase(point, 2);
  }
  return text;
}

std::string singular(Type::Kind kind) {
  switch (kind) {
    case Type::Kind::boolean:
      return "true or false";
    case Type::Kind::integer:
      return "an integer";
    case Type::Kind::real:
      return "a real number";
    case Type::Kind::path:
      return "a path";
    case Type::Kind::duration:
      return "a duration (90s, 5m, 1h30m)";
    case Type::Kind::section:
      return "a section";
    default:
      return "text";
  }
}

std::string plural(Type::Kind kind) {
  switch (kind) {
    case Type::Kind::boolean:
      return "true or false";
    case Type::Kind::integer:
      return "integers";
    case Type::Kind::real:
      return "real numbers";
    case Type::Kind::path:
      return "paths";
    case Type::Kind::duration:
      return "durations (90s, 5m, 1h30m)";
    case Type::Kind::map:
      return "maps";
    case Type::Kind::section:
      return "sections";
    case Type::Kind::list:
      return "lists";
    default:
      return "texts";
  }
}

bool holds_others(Type::Kind kind) { return kind == Type::Kind::list || kind == Type::Kind::map; }

/// " > 0s"; empty without bounds, or for a duration that is only not negative.
std::string bounds_text(const Type& type) {
  const bool is_duration = type.kind == Type::Kind::duration;
  const Range& range = type.range;
  if (is_duration && range.low == 0.0 && !range.low_excluded && !range.high) return "";
  const std::string text = range.text(is_duration ? "s" : "");
  return text.empty() ? text : " " + text;
}

std::string elements_text(const Type& type) {
  const Type& element = type.element.front();
  std::string text = type.kind == Type::Kind::map ? "a map of names to " : "a list of ";
  if (type.size) text += std::to_string(*type.size) + " ";
  text += element.choice             ? element.choice->kind + "s"
          : element.own_text.empty() ? plural(element.kind)
                                     : element.own_text;
  if (holds_others(element.kind)) return text + " (each " + element.text() + ")";
  if (!element.choices.empty()) return text + " out of " + joined(element.choices);
  text += bounds_text(element);
  return element.nullable ? text + " or null" : text;
}

/// "one of FULL_SHARD, NO_SHARD", with their numbers where those may be written.
std::string choices_text(const Type& type) {
  std::vector<std::string> texts = type.choices;
  for (std::size_t i = 0; type.is_numbered && i < texts.size(); ++i) {
    texts[i] += " (" + std::to_string(type.choice_values[i]) + ")";
  }
  return "one of " + joined(texts);
}

std::string value_text(const Type& type) {
  if (holds_others(type.kind)) return elements_text(type);
  if (!type.choices.empty()) return choices_text(type);
  if (!type.own_text.empty()) return type.own_text;
  if (type.choice) return "the name of a " + type.choice->kind + " or a section with its fields";
  return singular(type.kind) + bounds_text(type);
}

}  // namespace

bool Range::contains(double value) const {
  if (low && (low_excluded ? value <= *low : value < *low)) return false;
  return !(high && (high_excluded ? value >= *high : value > *high));
}

std::string Range::text(const std::string& unit) const {
  if (low && high) {
    return std::string("in ") + (low_excluded ? "(" : "[") + bound_text(*low) + unit + ", " +
           bound_text(*high) + unit + (high_excluded ? ")" : "]");
  }
  if (low) return (low_excluded ? "> " : ">= ") + bound_text(*low) + (*low == 0 ? "" : unit);
  if (high) return (high_excluded ? "< " : "<= ") + bound_text(*high) + unit;
  return "";
}

Type& Type::leaf() { return element.empty() ? *this : element.front().leaf(); }
const Type& Type::leaf() const { return element.empty() ? *this : element.front().leaf(); }

Node Type::no_value() const { return null_word.empty() ? Node::null() : Node::string(null_word); }

bool Type::is_no_value(const Node& node) const {
  if (node.is_null()) return true;
  const bool text = node.type == ScalarType::plain || node.type == ScalarType::string;
  return !null_word.empty() && node.is_scalar() && text && node.text == null_word;
}

std::string Type::text() const {
  const std::string text = value_text(*this);
  return nullable ? text + ", or " + (null_word.empty() ? "null" : null_word) : text;
}

}  // namespace phalanx::config
