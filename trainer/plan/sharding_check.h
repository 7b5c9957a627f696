// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/config/tree/node.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Refuses, before anything is written, what a sharded run is told that does not fit its ranks or
/// its precision: a mesh, a number of ranks that keep units, float16 without a loss scale. Throws
/// UserError with what would fit.
void require_sharding(const config::Node& resolved, const Ranks& ranks);

}  // namespace phalanx
