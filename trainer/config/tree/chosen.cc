// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/chosen.h"

#include <memory>
#include <stdexcept>
#include <utility>

#include "trainer/config/tree/binding.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

Chosen::Chosen(const char* name) : Chosen(Node::string(name)) {}

Chosen::Chosen(Node section) : section_(std::make_shared<const Node>(std::move(section))) {}

const std::string& Chosen::name() const {
  const Node* name = section().is_scalar() ? &section() : section().find("name");
  if (name == nullptr)
    throw std::logic_error("config: a class is asked for its name before any is chosen");
  return name->text;
}

const Node& Chosen::section() const {
  static const Node none;
  return section_ ? *section_ : none;
}

bool Chosen::is_resolved() const { return section().is_map(); }

Type Binding<Chosen>::type() {
  Type type;
  type.kind = Type::Kind::section;
  return type;
}

void Binding<Chosen>::from_node(Chosen& value, const Type&, const Node& node) {
  value = Chosen(node);
}

Node Binding<Chosen>::to_node(const Chosen& value, const Type&) {
  return short_form(value.section());
}

Node short_form(const Node& section) {
  const bool is_name =
      section.is_map() && section.entries.size() == 1 && section.entries.front().key == "name";
  return is_name ? section.entries.front().value : section;
}

}  // namespace phalanx::config
