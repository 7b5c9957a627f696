// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "trainer/config/tree/node.h"
#include "trainer/loop/trainer_setup.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/plan/run_plan.h"
#include "trainer/registry/trainers.h"

namespace phalanx {

/// What a resolved config asks for. Made once, before the ranks are: the run's folder, which they
/// add to the config, changes no check in it.
RunPlan plan_of(const TrainerEntry& entry, const config::Node& resolved);

/// Refuses, before ranks are started, adapters and groups of parameters that the model has no place
/// for, modules of the task that do not go with it, weights that they begin with (where the run
/// `begins_anew`) but that are not there, and a model that so many ranks cannot train together
/// (`ranks`; none: not known yet). Throws UserError.
void check_parameters(const RunPlan& plan, const config::Node& resolved, bool begins_anew,
                      const std::optional<int64_t>& ranks);

/// Builds what a resolved config with this plan has chosen, from its seed on, for this world;
/// writes nothing. A config without a task, for use alone, gives a trainer without one. Throws
/// UserError for a task that cannot drive the model, data that is not there, or a model that
/// training has no memory for.
std::unique_ptr<AnyTrainer> build_trainer(const TrainerEntry& entry, const RunPlan& plan,
                                          const config::Node& resolved, const World& world,
                                          Purpose purpose);

}  // namespace phalanx
