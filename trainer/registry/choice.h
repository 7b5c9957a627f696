// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "trainer/config/tree/declaration.h"
#include "trainer/registry/registry.h"

namespace phalanx {

/// How a config section `kind: {name: …, fields of that class}` is declared, for the classes that
/// are registered when it is asked.
template <class Product>
config::Choice registered_choice() {
  const auto& registry = Registry<Product>::instance();
  config::Choice choice;
  choice.kind = registry.table().kind();
  choice.names = [&registry] { return registry.table().names(); };
  choice.find = [&registry](std::string_view name) -> const config::Declaration* {
    return registry.table().contains(name) ? registry.at(name).declaration() : nullptr;
  };
  return choice;
}

/// The section of a resolved config that picks a class of this kind; nullptr in a program that has
/// no class of it.
template <class Product>
const config::Node* chosen_section(const config::Node& resolved) {
  return resolved.find(RegistryKind<Product>::kName);
}

/// The class that such a section names; the section must be there.
template <class Product>
const std::string& chosen_name(const config::Node& resolved) {
  return chosen_section<Product>(resolved)->find("name")->text;
}

/// An object of that class.
template <class Product>
std::shared_ptr<Product> make_chosen(const config::Node& resolved) {
  return Registry<Product>::instance()
      .at(chosen_name<Product>(resolved))
      .make(*chosen_section<Product>(resolved));
}

}  // namespace phalanx
