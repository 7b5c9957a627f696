#pragma once

#include "trainer/config/declaration.h"
#include "trainer/config/diagnostics.h"
#include "trainer/config/node.h"

namespace phalanx::config {

/// Gives a tree the shape that its declaration says: every field in the declared order, defaults
/// where nothing is given, `{name: x}` for a choice's short form. Unknown keys, unknown names and
/// values that are no section go to `diagnostics`. Values are not checked, and a section that is an
/// interpolation stays one: fill again once it is replaced.
void fill(const Declaration& declaration, Node& tree, Diagnostics& diagnostics);

}  // namespace phalanx::config
