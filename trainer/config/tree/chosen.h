// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/config/tree/node.h"

namespace phalanx::config {

struct Type;
template <class T>
struct Binding;

/// A class that a config picks by name, with that class's fields. As a member of a struct, alone,
/// optional or in a list; its field says out of which classes:
/// `s.field("sinks", &Config::sinks, "where records go").out_of(registered_choice<Sink>());`
struct Chosen {
  Chosen() = default;
  Chosen(const char* name) : section(Node::string(name)) {}  // NOLINT: {"jsonl", "progress"}

  /// Of the class. `Registry<Sink>::instance().make(chosen)` makes an object of it.
  const std::string& name() const;

  /// A map of `name` and the fields of the class. A default is its name alone until it is resolved.
  Node section;
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
