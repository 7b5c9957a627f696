// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "trainer/config/syntax/interpolate.h"
#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/fill.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

struct ResolveOptions {
  /// Dotted paths that may stay `???` because the program fills them in later (exp_dir).
  std::vector<std::string> filled_later = {};
  /// What interpolations may name besides the config's own values.
  KnownValues known = {};
  /// What to say of a key that is not declared.
  ExplainKey explain_key = nullptr;
};

/// The complete config: `user_tree` (files and overrides) with every default filled in,
/// interpolations replaced, every value checked and typed, sections in the declared order. Reports
/// every mistake to `diagnostics`, and warns of options that the user has set and that have no
/// effect here; the result is of use only when there is no mistake.
///
/// An interpolation (Interpolator) alone in a scalar keeps the type of what it names, within text
/// it is inserted. `???` stands for a value that is still to be given.
Node resolve(const Declaration& declaration, Node user_tree, Diagnostics& diagnostics,
             const ResolveOptions& options = {});

}  // namespace phalanx::config
