// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/binding.h"

#include <algorithm>
#include <stdexcept>

#include "trainer/config/syntax/quantity.h"
#include "trainer/config/tree/scalar.h"

namespace phalanx::config::detail {

namespace {

const std::string& text_of(const Node& node, ScalarType type) {
  if (!node.is_scalar() || node.type != type) {
    throw std::logic_error("config: '" + node.text + "' was not resolved before it was read");
  }
  return node.text;
}

}  // namespace

bool to_bool(const Node& node) { return text_of(node, ScalarType::boolean) == "true"; }

std::int64_t to_integer(const Node& node) {
  return parse_integer(text_of(node, ScalarType::integer)).value.value();
}

std::chrono::milliseconds to_duration(const Node& node) {
  return parse_duration(to_text(node)).value.value();
}

Node from_duration(std::chrono::milliseconds value) { return Node::string(print_duration(value)); }

double to_real(const Node& node) {
  return parse_real(text_of(node, ScalarType::real)).value.value();
}

const std::string& to_text(const Node& node) { return text_of(node, ScalarType::string); }

std::int64_t to_choice(const Node& node, const Type& type) {
  const std::string& text = to_text(node);
  const auto found = std::find(type.choices.begin(), type.choices.end(), text);
  if (found == type.choices.end()) {
    throw std::logic_error("config: '" + text + "' was not checked before it was read");
  }
  return type.choice_values.at(static_cast<std::size_t>(found - type.choices.begin()));
}

Node from_choice(std::int64_t value, const Type& type) {
  const auto& values = type.choice_values;
  const auto found = std::find(values.begin(), values.end(), value);
  if (found == values.end()) {
    throw std::logic_error("config: the enum value " + std::to_string(value) +
                           " has no name among the choices");
  }
  return Node::string(type.choices.at(static_cast<std::size_t>(found - values.begin())));
}

void throw_not_a(const char* kind, const Node& node) {
  throw std::logic_error("config: '" + node.text + "' is read as a " + kind + " and is none");
}

}  // namespace phalanx::config::detail
