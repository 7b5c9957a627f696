#pragma once

#include <string>
#include <vector>

#include "trainer/config/declaration.h"
#include "trainer/config/diagnostics.h"
#include "trainer/config/node.h"

namespace phalanx::config {

struct ResolveOptions {
  /// Dotted paths that may stay `???` because the program fills them in later (exp_dir).
  std::vector<std::string> filled_later = {};
};

/// The complete config: `user_tree` (files and overrides) with every default filled in,
/// interpolations replaced, every value checked and typed, sections in the declared order. Reports
/// every mistake to `diagnostics`; the result is of use only when there is none.
///
/// Interpolation: `${a.b}` is the value at that path, `${oc.env:VAR}` and `${oc.env:VAR,default}`
/// an environment variable. Alone in a scalar it keeps its type, within text it is inserted; `\${`
/// is a literal `${`. `???` stands for a value that is still to be given.
Node resolve(const Declaration& declaration, Node user_tree, Diagnostics& diagnostics,
             const ResolveOptions& options = {});

}  // namespace phalanx::config
