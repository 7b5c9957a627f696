// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/chosen.h"

#include <stdexcept>

#include "trainer/config/tree/binding.h"

namespace phalanx::config {

const std::string& Chosen::name() const {
  const Node* name = section.is_scalar() ? &section : section.find("name");
  if (name == nullptr)
    throw std::logic_error("config: a class is asked for its name before any is chosen");
  return name->text;
}

Type Binding<Chosen>::type() {
  Type type;
  type.kind = Type::Kind::section;
  return type;
}

void Binding<Chosen>::from_node(Chosen& value, const Type&, const Node& node) {
  value.section = node;
}

Node Binding<Chosen>::to_node(const Chosen& value, const Type&) {
  return short_form(value.section);
}

Node short_form(const Node& section) {
  const bool is_name =
      section.is_map() && section.entries.size() == 1 && section.entries.front().key == "name";
  return is_name ? section.entries.front().value : section;
}

}  // namespace phalanx::config
