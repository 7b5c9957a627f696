// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "trainer/config/tree/node.h"
#include "trainer/launch/launcher.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/plan/run_plan.h"

namespace phalanx {

/// The config's `launcher`.
std::shared_ptr<Launcher> launcher_of(const config::Node& resolved);

/// Its name; "none" for a program without launchers.
std::string name_of_launcher(const config::Node& resolved);

/// Warns on the screen where a launcher of this name is about to start one rank and leaves the
/// other tasks of a Slurm job idle.
void warn_of_idle_tasks(const Launcher& launcher, std::string_view name);

/// Warns on the screen where a launcher is about to start far more ranks than this host has cores,
/// and no GPUs compute for them.
void warn_of_crowd(const Launcher& launcher);

/// Runs `main` in every rank of a run: in this process as one of them where others have started it
/// so, else in as many as `launcher` starts. Returns the outcome of the whole, with
/// the message of the rank that is the cause of a failure; in a rank that only met another one's
/// end, and knows that somebody reports it, without a message. A rank's message is in the copy of
/// its console's lines too.
RankOutcome outcome_of_ranks(const RunPlan& plan, Launcher& launcher,
                             const std::function<int(World&)>& main);

/// The exit code of an outcome without a message. Throws UserError or std::runtime_error with the
/// message of another.
int exit_code_or_throw(const RankOutcome& outcome);

/// Both by the config's `launcher`, for a command that only wants the exit code.
int run_in_ranks(const RunPlan& plan, const config::Node& resolved,
                 const std::function<int(World&)>& main);

}  // namespace phalanx
