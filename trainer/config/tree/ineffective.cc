// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/ineffective.h"

#include <algorithm>

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

// Whether somebody has set a value, or a part of one.
bool is_set(const Node& value) {
  return value.origin.source != nullptr ||
         std::ranges::any_of(value.entries, [](const Entry& entry) { return is_set(entry.value); });
}

bool gives_all_fields(const Declaration& declaration, const Node& section) {
  return std::ranges::all_of(declaration.fields(), [&section](const Field& field) {
    const Node* value = section.find(field.name);
    return value != nullptr && is_set(*value);
  });
}

// Whether a default that is written there is nobody's choice; `gives_all`: all of its section are.
bool is_printed(const Source& source, bool gives_all) {
  return source.kind == Source::Kind::file && (gives_all || source.text.starts_with(kWholeConfig));
}

// Adds the values that `counts` says.
template <class Counts>
void collect(const Node& value, const Node* fallback, const std::string& path, const Counts& counts,
             std::vector<SetValue>& found) {
  if (value.is_map()) {
    for (const Entry& entry : value.entries) {
      const Node* inner = fallback == nullptr ? nullptr : fallback->find(entry.key);
      collect(entry.value, inner, join_path(path, entry.key), counts, found);
    }
    return;
  }
  const bool is_default = fallback != nullptr && same_value(value, *fallback);
  if (value.origin.source && counts(value.origin, is_default)) {
    found.push_back({path, value.origin});
  }
}

template <class Counts>
std::vector<SetValue> values_at(const Declaration& declaration, const Node& section,
                                const std::string& path, const std::vector<std::string>& fields,
                                const Counts& counts) {
  std::vector<SetValue> found;
  const Node defaults = defaults_of(declaration);
  for (const std::string& field : fields) {
    const Node* value = section.find_path(field);
    if (value == nullptr) continue;
    collect(*value, defaults.find_path(field), join_path(path, field), counts, found);
  }
  return found;
}

}  // namespace

std::vector<SetValue> set_values(const Declaration& declaration, const Node& section,
                                 const std::string& path, const std::vector<std::string>& fields) {
  return values_at(declaration, section, path, fields,
                   [](const Origin&, bool is_default) { return !is_default; });
}

void warn_of_ineffective(const Declaration& declaration, const Node& section,
                         const std::string& path, Diagnostics& diagnostics) {
  const bool gives_all = gives_all_fields(declaration, section);
  const auto is_chosen = [gives_all](const Origin& origin, bool is_default) {
    return origin.is_written() && !(is_default && is_printed(*origin.source, gives_all));
  };
  for (const Declaration::Ineffective& rule : declaration.ineffective()) {
    if (!rule.applies(section)) continue;
    for (const SetValue& value : values_at(declaration, section, path, rule.fields, is_chosen)) {
      diagnostics.warn(value.origin, value.path, "this has no effect: " + rule.reason);
    }
  }
}

}  // namespace phalanx::config
