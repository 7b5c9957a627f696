// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/text/minimal.h"

#include <utility>

#include "trainer/config/tree/chosen.h"

namespace phalanx::config {

namespace {

Node minimal_section(const Declaration& declaration, const Node& section, const Node* defaults);

Node minimal_choice(const Choice& choice, const Node& value) {
  const Node* name = value.find("name");
  if (name == nullptr) return value;
  Node result = Node::map();
  result.origin = value.origin;
  const Declaration* chosen = choice.find(name->text);
  const Node fields = chosen == nullptr ? Node::map() : minimal_section(*chosen, value, nullptr);
  if (name->text != choice.default_name || !fields.entries.empty()) result.set("name", *name);
  for (const Entry& entry : fields.entries) result.entries.push_back(entry);
  return result;
}

/// The sections that a list or map holds, each without its own defaults.
void minimize_elements(const Type& type, Node& value) {
  const Type& element = type.element.front();
  const auto minimize = [&element](Node& node) {
    if (!element.element.empty()) {
      minimize_elements(element, node);
    } else if (element.choice) {
      node = short_form(minimal_choice(*element.choice, node));
    } else if (element.kind == Type::Kind::section && node.is_map()) {
      node = minimal_section(*element.section, node, nullptr);
    }
  };
  for (Node& item : value.items) minimize(item);
  for (Entry& entry : value.entries) minimize(entry.value);
}

/// Whether a value says nothing that its default does not say.
bool is_default(const Field& field, const Node& value, const Node& fallback) {
  if (field.type.choice) {
    const bool is_empty = value.is_map() && value.entries.empty();
    return is_empty || (!field.mandatory && same_value(short_form(value), fallback));
  }
  const bool reduced = field.type.kind == Type::Kind::section && value.is_map();
  // An empty section that is null by default says that the section is there.
  if (reduced && (!field.type.nullable || fallback.is_map())) return value.entries.empty();
  return !field.mandatory && same_value(value, fallback);
}

Node minimal_section(const Declaration& declaration, const Node& section, const Node* defaults) {
  Node result = Node::map();
  result.origin = section.origin;
  for (const Field& field : declaration.fields()) {
    const Node* value = section.find(field.name);
    if (value == nullptr || value->is_missing()) continue;
    const Node* inherited = defaults == nullptr ? nullptr : defaults->find(field.name);
    const Node& fallback = inherited == nullptr ? field.default_value : *inherited;
    Node shown = *value;
    if (field.type.choice && value->is_map()) {
      shown = minimal_choice(*field.type.choice, *value);
    } else if (field.type.kind == Type::Kind::section && value->is_map()) {
      shown = minimal_section(*field.type.section, *value, fallback.is_map() ? &fallback : nullptr);
    }
    if (is_default(field, shown, fallback)) continue;
    if (!field.type.element.empty()) minimize_elements(field.type, shown);
    if (is_default(field, shown, fallback)) continue;  // in its short form
    result.set(field.name, std::move(shown));
  }
  return result;
}

}  // namespace

Node minimal(const Declaration& declaration, const Node& resolved) {
  return minimal_section(declaration, resolved, nullptr);
}

}  // namespace phalanx::config
