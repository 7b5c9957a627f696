// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// What a resolved config says beyond the defaults: the shortest tree that resolves to it. Classes
/// that were chosen are named, also those by default, where a field of theirs differs.
Node minimal(const Declaration& declaration, const Node& resolved);

}  // namespace phalanx::config
