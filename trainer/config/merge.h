#pragma once

#include "trainer/config/node.h"

namespace phalanx::config {

/// Lays `value` over `target`: maps merge key by key, everything else replaces. A section's short
/// form counts as its `name`, whichever of the two it is: `sgd` and `{name: sgd}` are the same.
void merge(Node& target, Node value);

}  // namespace phalanx::config
