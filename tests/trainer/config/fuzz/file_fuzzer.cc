// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/target.h"
#include "tests/trainer/config/fuzz/input.h"
#include "tests/trainer/config/fuzz/invariants.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"

using namespace phalanx;
using namespace phalanx::config;

/// The input is a config file.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::set_environment();
  Diagnostics diagnostics;
  try {
    const Node tree = parse_yaml(fuzz::text_of(data, size), "fuzz.yaml", diagnostics);
    fuzz::require_sound_tree(tree);
    fuzz::require_resolves_or_explains(tree, diagnostics);
  } catch (const UserError&) {
    fuzz::require_clear(diagnostics);
  }
  return 0;
}
