// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "trainer/base/nearest.h"
#include "trainer/config/syntax/quantity.h"
#include "trainer/config/tree/scalar.h"

namespace phalanx::config {

namespace {

/// What is wrong with a scalar, beginning with what was found; the scalar becomes typed when
/// nothing is.
using Problem = std::optional<std::string>;

Problem quoted_instead_of(const Node& node, ScalarType wanted) {
  if (node.type == ScalarType::plain || node.type == wanted) return std::nullopt;
  if (node.type == ScalarType::integer && wanted == ScalarType::real) return std::nullopt;
  if (node.type != ScalarType::string) return "found " + node.text;
  return "found the text \"" + node.text + "\"" +
         (core_type(Node::plain(node.text)) == wanted ? "; write it without quotes" : "");
}

std::string out_of_range(const Node& node) { return "'" + node.text + "' is out of range"; }

Problem check_boolean(Node& node) {
  if (Problem problem = quoted_instead_of(node, ScalarType::boolean)) return problem;
  const Parsed<bool> parsed = parse_boolean(node.text);
  if (!parsed.value) return parsed.problem;
  node.type = ScalarType::boolean;
  return std::nullopt;
}

Problem check_integer(const Type& type, Node& node) {
  if (Problem problem = quoted_instead_of(node, ScalarType::integer)) return problem;
  const Parsed<std::int64_t> parsed =
      type.is_count ? parse_count(node.text) : parse_integer(node.text);
  if (!parsed.value) return parsed.problem;
  const std::int64_t value = *parsed.value;
  if (!type.range.contains(static_cast<double>(value))) return out_of_range(node);
  node.type = ScalarType::integer;
  node.text = std::to_string(value);
  return std::nullopt;
}

Problem check_real(const Type& type, Node& node) {
  if (Problem problem = quoted_instead_of(node, ScalarType::real)) return problem;
  const Parsed<double> parsed = parse_real(node.text);
  if (!parsed.value) return parsed.problem;
  const double value = *parsed.value;
  if (std::isnan(value)) return "'" + node.text + "', not a number, makes no sense here";
  if (std::isinf(value)) return "'" + node.text + "' is not finite";
  if (!type.range.contains(value)) return out_of_range(node);
  node.type = ScalarType::real;
  node.text = print_real(value);
  return std::nullopt;
}

Problem check_duration(const Type& type, Node& node) {
  const auto parsed = parse_duration(node.text);
  if (!parsed.value) return parsed.problem;
  if (!type.range.contains(std::chrono::duration<double>(*parsed.value).count())) {
    return out_of_range(node);
  }
  node.type = ScalarType::string;
  node.text = print_duration(*parsed.value);
  return std::nullopt;
}

/// An enum's number for its name.
Problem take_number(const Type& type, Node& node) {
  if (!type.is_numbered) return std::nullopt;
  const auto number = parse_integer(node.text).value;
  const auto& numbers = type.choice_values;
  const auto found = number ? std::find(numbers.begin(), numbers.end(), *number) : numbers.end();
  if (found == numbers.end()) return std::nullopt;
  if (node.type == ScalarType::string) return quoted_instead_of(node, ScalarType::integer);
  node.text = type.choices[static_cast<std::size_t>(found - numbers.begin())];
  return std::nullopt;
}

Problem check_text(const Type& type, Node& node) {
  if (Problem problem = take_number(type, node)) return problem;
  if (!type.choices.empty() &&
      std::find(type.choices.begin(), type.choices.end(), node.text) == type.choices.end()) {
    const std::optional<std::string> near = nearest(node.text, type.choices);
    return "unknown value '" + node.text + "'" + (near ? ", perhaps '" + *near + "'" : "");
  }
  if (type.kind == Type::Kind::path && node.text.empty()) return "the path is empty";
  if (node.text.find('\0') != std::string::npos) return "the text holds a zero byte";
  if (type.canonical) {
    Parsed<std::string> parsed = type.canonical(node.text);
    if (!parsed.value) return parsed.problem;
    node.text = std::move(*parsed.value);
    node.type = core_type(Node::plain(node.text));
    return std::nullopt;
  }
  node.type = ScalarType::string;
  return std::nullopt;
}

Problem check_scalar(const Type& type, Node& node) {
  switch (type.kind) {
    case Type::Kind::boolean:
      return check_boolean(node);
    case Type::Kind::integer:
      return check_integer(type, node);
    case Type::Kind::real:
      return check_real(type, node);
    case Type::Kind::duration:
      return check_duration(type, node);
    default:
      return check_text(type, node);
  }
}

void check_list(const Type& type, Node& node, const std::string& path, Diagnostics& diagnostics) {
  if (type.size && node.items.size() != *type.size) {
    diagnostics.add(
        node.origin, path,
        "found a list of " + std::to_string(node.items.size()) + "; expected " + type.text());
  }
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    check_value(type.element.front(), node.items[i], path + "[" + std::to_string(i) + "]",
                diagnostics);
  }
}

/// How to write as a list what was written as a scalar, or empty where that is not clear.
std::string as_list(const Type& type, const Node& value) {
  if (type.kind != Type::Kind::list || !value.is_scalar()) return "";
  if (value.text.starts_with('[') && value.text.ends_with(']')) return "; write it without quotes";
  const bool has_brackets = value.text.find_first_of("[]") != std::string::npos;
  const std::size_t size = 1 + std::count(value.text.begin(), value.text.end(), ',');
  return has_brackets || (type.size && *type.size != size) ? "" : ": write [" + value.text + "]";
}

/// "; write 300": of a duration where a number of seconds is wanted, as the field's name says.
std::string as_seconds(const Type& type, const Node& value, const std::string& path) {
  const bool is_number = type.kind == Type::Kind::real || type.kind == Type::Kind::integer;
  if (!is_number || !path.ends_with("seconds")) return "";
  const auto duration = parse_duration(value.text).value;
  if (!duration) return "";
  const std::chrono::duration<double> seconds = *duration;
  const bool is_whole = seconds.count() == std::floor(seconds.count());
  const std::string text = is_whole ? std::to_string(static_cast<std::int64_t>(seconds.count()))
                                    : print_real(seconds.count());
  return "; write " + text + ", in seconds";
}

}  // namespace

std::string describe_value(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::scalar:
      return "'" + node.text + "'";
    case Node::Kind::list:
      return "a list";
    case Node::Kind::map:
      return "a map";
  }
  return "";
}

void check_value(const Type& type, Node& value, const std::string& path, Diagnostics& diagnostics) {
  if (type.nullable && type.is_no_value(value)) {
    Origin origin = std::move(value.origin);
    value = type.no_value();
    value.origin = std::move(origin);
    return;
  }
  if (value.is_null()) {
    diagnostics.add(value.origin, path,
                    (value.is_blank ? "nothing is written here" : "found null, no value") +
                        std::string("; expected ") + type.text());
    return;
  }
  if (type.kind == Type::Kind::section) return;
  if (type.kind == Type::Kind::list && value.is_list()) {
    check_list(type, value, path, diagnostics);
  } else if (type.kind == Type::Kind::map && value.is_map()) {
    // In the order that a std::map has, which is that of what it is written back as.
    std::sort(value.entries.begin(), value.entries.end(),
              [](const Entry& x, const Entry& y) { return x.key < y.key; });
    for (Entry& entry : value.entries) {
      check_value(type.element.front(), entry.value, join_path(path, entry.key), diagnostics);
    }
  } else if (type.kind == Type::Kind::map || type.kind == Type::Kind::list || !value.is_scalar()) {
    diagnostics.add(
        value.origin, path,
        "found " + describe_value(value) + "; expected " + type.text() + as_list(type, value));
  } else if (const Problem problem = check_scalar(type, value)) {
    diagnostics.add(value.origin, path,
                    *problem + as_seconds(type, value, path) + "; expected " + type.text());
  }
}

}  // namespace phalanx::config
