// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/registry/kinds.h"

namespace phalanx {

/// A registered class built by name from its section of a config, in YAML.
/// `make_registered<Optimizer>("sgd", "{lr: 0.1}")`.
template <class Product>
std::shared_ptr<Product> make_registered(std::string_view name, const std::string& yaml = "{}") {
  const auto& entry = Registry<Product>::instance().at(name);
  config::Diagnostics diagnostics;
  config::Node section = config::parse_yaml(yaml, "test", diagnostics);
  section = config::resolve(*entry.declaration(), std::move(section), diagnostics);
  diagnostics.throw_if_any();
  return entry.make(section);
}

}  // namespace phalanx
