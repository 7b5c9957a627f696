// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "trainer/config/tree/node.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/plan/run_plan.h"

namespace phalanx {

/// Runs `main` in every rank of a run: in this process as one of them where a launcher has started
/// it so, else in as many as the config's `launcher` starts. Returns the exit code. Throws
/// UserError or std::runtime_error with the message of the rank that is the cause of a failure; in
/// a rank that only met another one's end, and knows that somebody reports it, nothing.
int run_in_ranks(const RunPlan& plan, const config::Node& resolved,
                 const std::function<int(World&)>& main);

}  // namespace phalanx
