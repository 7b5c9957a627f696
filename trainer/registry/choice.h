// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace phalanx
