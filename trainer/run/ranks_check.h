// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "trainer/plan/run_plan.h"

namespace phalanx {

/// Makes the plan's checks for ranks that have not met yet: as many as `counts` on each node.
/// Throws UserError where the run refuses them.
void check_ranks_of_nodes(const RunPlan& plan, std::span<const int64_t> counts);

}  // namespace phalanx
