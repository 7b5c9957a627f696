// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/ineffective.h"

namespace phalanx::config {

namespace {

class Warner {
 public:
  Warner(const std::string& reason, Diagnostics& diagnostics)
      : reason_(reason), diagnostics_(diagnostics) {}

  void visit(const Node& value, const Node* fallback, const std::string& path) {
    if (value.is_map()) {
      for (const Entry& entry : value.entries) {
        const Node* inner = fallback == nullptr ? nullptr : fallback->find(entry.key);
        visit(entry.value, inner, join_path(path, entry.key));
      }
      return;
    }
    const bool is_default = fallback != nullptr && same_value(value, *fallback);
    if (!value.origin.is_written() || is_default) return;
    diagnostics_.warn(value.origin, path, "this has no effect: " + reason_);
  }

 private:
  const std::string& reason_;
  Diagnostics& diagnostics_;
};

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

}  // namespace

void warn_of_ineffective(const Declaration& declaration, const Node& section,
                         const std::string& path, Diagnostics& diagnostics) {
  for (const Declaration::Ineffective& rule : declaration.ineffective()) {
    if (!rule.applies(section)) continue;
    const Node defaults = defaults_of(declaration);
    for (const std::string& field : rule.fields) {
      const Node* value = section.find_path(field);
      if (value == nullptr) continue;
      Warner(rule.reason, diagnostics)
          .visit(*value, defaults.find_path(field), join_path(path, field));
    }
  }
}

}  // namespace phalanx::config
