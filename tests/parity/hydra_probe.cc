// SPDX-License-Identifier: Apache-2.0
/// hydra_probe < CASES: reads a JSON list of {"yaml": ..., "overrides": [...], "resolve": ...},
/// applies the overrides and, where asked, fills in the interpolations. Prints one line of JSON a
/// case, {"tree": ...} or {"errors": [...]}, infinities and NaN as Python's json module writes
/// them.

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/interpolate.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace {

using nlohmann::json;
using phalanx::config::Diagnostics;
using phalanx::config::Entry;
using phalanx::config::Node;
using phalanx::config::ScalarType;

/// to_json, but with numbers for what JSON has none for.
std::string typed_json(const Node& node) {
  if (node.is_scalar()) {
    if (core_type(node) == ScalarType::real) {
      if (node.text == ".nan") return "NaN";
      if (node.text == "-.inf") return "-Infinity";
      if (node.text.ends_with(".inf")) return "Infinity";
    }
    return to_json(node);
  }
  if (node.is_null()) return "null";
  std::string text;
  for (const Node& item : node.items) text += (text.empty() ? "" : ", ") + typed_json(item);
  for (const Entry& entry : node.entries) {
    text += (text.empty() ? "" : ", ") + json(entry.key).dump() + ": " + typed_json(entry.value);
  }
  return node.is_list() ? "[" + text + "]" : "{" + text + "}";
}

std::string result_of(const json& test_case) {
  Diagnostics diagnostics;
  Node tree = phalanx::config::parse_yaml(test_case.at("yaml"), "case.yaml", diagnostics);
  for (const json& argument : test_case.at("overrides")) {
    apply_override(tree, argument, diagnostics);
  }
  if (diagnostics.empty() && test_case.at("resolve")) {
    const phalanx::config::KnownValues known;
    phalanx::config::Interpolator(tree, diagnostics, known).resolve_all();
  }
  if (diagnostics.empty()) return R"({"tree": )" + typed_json(tree) + "}";
  json errors = json::array();
  for (const auto& diagnostic : diagnostics.all()) errors.push_back(diagnostic.message);
  return json{{"errors", errors}}.dump();
}

}  // namespace

int main() {
  for (const json& test_case : json::parse(std::cin)) {
    try {
      std::cout << result_of(test_case) << "\n";
    } catch (const phalanx::UserError& error) {
      std::cout << json{{"errors", {error.what()}}}.dump() << "\n";
    }
  }
}
