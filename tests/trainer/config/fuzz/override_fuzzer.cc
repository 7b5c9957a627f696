// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "tests/fuzz/target.h"
#include "tests/trainer/config/fuzz/input.h"
#include "tests/trainer/config/fuzz/invariants.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"

using namespace phalanx;
using namespace phalanx::config;

namespace {

/// Applies an override that is without mistakes; when it sets something, a second time changes
/// nothing more.
void apply(Node& tree, const std::string& argument, Diagnostics& diagnostics) {
  Diagnostics own;
  Node changed = tree;
  apply_override(changed, argument, own);
  if (own.empty() && !argument.starts_with("~")) {
    Node twice = changed;
    apply_override(twice, argument, own);
    const bool only_adds = argument.starts_with("+") && !argument.starts_with("++");
    fuzz::require(only_adds || own.empty(), "an override is refused the second time");
    fuzz::require(!own.empty() || same_value(twice, changed), "an override twice is another one");
  }
  static_cast<void>(is_forced(argument, "optimizer.lr"));
  apply_override(tree, argument, diagnostics);
}

}  // namespace

/// The input is a config file, or nothing for one that needs no more, and the overrides on top of
/// it, with zero bytes between.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::set_environment();
  std::vector<std::string> parts = fuzz::parts_of(data, size);
  if (parts.front().empty()) {
    parts.front() =
        "{path: x, optimizer: adam, words: [a, b], inners: [{items: [{}, {id: 1}]}, {}],"
        " matrix: [[1], []], inner: {item: {count: 3}}, model: {name: sgd, lr: 1}}";
  }
  Diagnostics diagnostics;
  try {
    Node tree = parse_yaml(parts.front(), "fuzz.yaml", diagnostics);
    for (std::size_t i = 1; i < parts.size(); ++i) apply(tree, parts[i], diagnostics);
    fuzz::require_sound_tree(tree);
    fuzz::require_resolves_or_explains(tree, diagnostics);
  } catch (const UserError&) {
    fuzz::require_clear(diagnostics);
  }
  return 0;
}
