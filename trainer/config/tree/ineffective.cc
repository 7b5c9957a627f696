// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/ineffective.h"

namespace phalanx::config {

namespace {

/// The defaults of a section's fields, as far as its own declaration knows them.
Node defaults_of(const Declaration& declaration) {
  Node defaults = Node::map();
  for (const Field& field : declaration.fields()) {
    const bool own = field.type.kind == Type::Kind::section && field.default_value.is_null() &&
                     field.type.section != nullptr && !field.type.nullable;
    defaults.set(field.name, own ? defaults_of(*field.type.section) : field.default_value);
  }
  return defaults;
}

void collect(const Node& value, const Node* fallback, const std::string& path,
             std::vector<SetValue>& found) {
  if (value.is_map()) {
    for (const Entry& entry : value.entries) {
      const Node* inner = fallback == nullptr ? nullptr : fallback->find(entry.key);
      collect(entry.value, inner, join_path(path, entry.key), found);
    }
    return;
  }
  const bool is_default = fallback != nullptr && same_value(value, *fallback);
  if (value.origin.source && !is_default) found.push_back({path, value.origin});
}

}  // namespace

std::vector<SetValue> set_values(const Declaration& declaration, const Node& section,
                                 const std::string& path, const std::vector<std::string>& fields) {
  std::vector<SetValue> found;
  const Node defaults = defaults_of(declaration);
  for (const std::string& field : fields) {
    const Node* value = section.find_path(field);
    if (value == nullptr) continue;
    collect(*value, defaults.find_path(field), join_path(path, field), found);
  }
  return found;
}

void warn_of_ineffective(const Declaration& declaration, const Node& section,
                         const std::string& path, Diagnostics& diagnostics) {
  for (const Declaration::Ineffective& rule : declaration.ineffective()) {
    if (!rule.applies(section)) continue;
    for (const SetValue& value : set_values(declaration, section, path, rule.fields)) {
      if (!value.origin.is_written()) continue;
      diagnostics.warn(value.origin, value.path, "this has no effect: " + rule.reason);
    }
  }
}

}  // namespace phalanx::config
