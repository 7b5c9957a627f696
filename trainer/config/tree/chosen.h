// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "trainer/config/tree/forward.h"

namespace phalanx::config {

/// A class that a config picks by name, with that class's fields. As a member of a struct, alone,
/// optional or in a list; its field says out of which classes:
/// `s.field("sinks", &Config::sinks, "where records go").out_of(registered_choice<Sink>());`
class Chosen {
 public:
  Chosen() = default;
  Chosen(const char* name);  // NOLINT: {"jsonl", "progress"}
  explicit Chosen(Node section);

  /// The class's name. `Registry<Sink>::instance().make(chosen)` makes an object of it. Throws
  /// std::logic_error before a class is chosen.
  const std::string& name() const;
  /// A map of `name` and the fields of the class, or the name alone (see is_resolved), or null
  /// before a class is chosen.
  const Node& section() const;
  /// Whether the section holds the fields too; a default is its name alone until then.
  bool is_resolved() const;

 private:
  // Shared by copies, as nothing changes it. A pointer, so that who has a member of this type is
  // not compiled again when node.h changes.
  std::shared_ptr<const Node> section_;
};

template <>
struct Binding<Chosen> {
  static Type type();
  static void from_node(Chosen& value, const Type& type, const Node& node);
  static Node to_node(const Chosen& value, const Type& type);
};

/// The name alone for a section that holds nothing else; another node as it is.
Node short_form(const Node& section);

}  // namespace phalanx::config
