// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/node.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "trainer/config/tree/scalar.h"

namespace phalanx::config {

namespace {

Node scalar(ScalarType type, std::string text) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.type = type;
  node.text = std::move(text);
  return node;
}

/// The number that a scalar stands for, in the one spelling that print uses.
std::string canonical_text(const Node& node, ScalarType type) {
  if (node.type != ScalarType::plain) return node.text;
  if (type == ScalarType::integer) return std::to_string(*parse_integer(node.text).value);
  if (type == ScalarType::real) return print_real(*parse_real(node.text).value);
  return node.text;
}

}  // namespace

std::string Origin::text() const {
  if (!source) return "default";
  if (source->kind == Source::Kind::command_line || line == 0) return source->name;
  return source->name + ":" + std::to_string(line);
}

Node Node::null() { return Node(); }
Node Node::plain(std::string text) { return scalar(ScalarType::plain, std::move(text)); }
Node Node::string(std::string text) { return scalar(ScalarType::string, std::move(text)); }
Node Node::boolean(bool value) { return scalar(ScalarType::boolean, value ? "true" : "false"); }
Node Node::integer(std::int64_t value) {
  return scalar(ScalarType::integer, std::to_string(value));
}
Node Node::real(double value) { return scalar(ScalarType::real, print_real(value)); }

Node Node::list() { return list(std::vector<Node>()); }

Node Node::list(std::vector<Node> items) {
  Node node;
  node.kind = Kind::list;
  node.items = std::move(items);
  return node;
}

Node Node::map() {
  Node node;
  node.kind = Kind::map;
  return node;
}

bool Node::is_missing() const { return is_scalar() && type == ScalarType::plain && text == "???"; }

const Node* Node::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [key](const Entry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &found->value;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

namespace {

// The value of a part of a dotted path: a key, or that of an element of a list ("mixture[1]").
const Node* find_part(const Node& node, std::string_view part) {
  const std::size_t bracket = part.find('[');
  if (bracket == std::string_view::npos || node.find(part) != nullptr) return node.find(part);
  const Node* found = node.find(part.substr(0, bracket));
  for (part.remove_prefix(bracket); found != nullptr && !part.empty();) {
    std::size_t index = 0;
    const char* const first = part.data() + 1;
    const auto [end, error] = std::from_chars(first, part.data() + part.size(), index);
    const auto length = static_cast<std::size_t>(end - part.data());
    if (part.front() != '[' || error != std::errc() || length == part.size() || *end != ']') {
      return nullptr;
    }
    found = index < found->items.size() ? &found->items[index] : nullptr;
    part.remove_prefix(length + 1);
  }
  return found;
}

}  // namespace

const Node* Node::find_path(std::string_view path) const {
  if (path.empty()) return this;
  const Node* node = this;
  for (const std::string& key : split_path(path)) {
    node = find_part(*node, key);
    if (node == nullptr) return nullptr;
  }
  return node;
}

Node& Node::set(std::string key, Node value) {
  if (is_null()) kind = Kind::map;
  if (Node* old = find(key)) return *old = std::move(value);
  const Origin key_origin = value.origin;
  entries.push_back({std::move(key), key_origin, std::move(value)});
  return entries.back().value;
}

std::string join_path(std::string_view section, std::string_view key) {
  if (section.empty()) return std::string(key);
  return std::string(section) + "." + std::string(key);
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t dot = path.find('.');
    parts.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    path.remove_prefix(dot + 1);
  }
}

ScalarType core_type(const Node& scalar) {
  if (scalar.type != ScalarType::plain) return scalar.type;
  if (parse_boolean(scalar.text).value) return ScalarType::boolean;
  if (parse_integer(scalar.text).value) return ScalarType::integer;
  if (parse_real(scalar.text).value) return ScalarType::real;
  return ScalarType::string;
}

bool same_value(const Node& a, const Node& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Node::Kind::null:
      return true;
    case Node::Kind::scalar:
      return core_type(a) == core_type(b) &&
             canonical_text(a, core_type(a)) == canonical_text(b, core_type(b));
    case Node::Kind::list:
      return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_value);
    case Node::Kind::map:
      break;
  }
  return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                    [](const Entry& x, const Entry& y) {
                      return x.key == y.key && same_value(x.value, y.value);
                    });
}

}  // namespace phalanx::config
