// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "trainer/cli/command.h"
#include "trainer/config/tree/node.h"
#include "trainer/loop/trainer_setup.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/plan/run_plan.h"
#include "trainer/run/load_config.h"
#include "trainer/run/run_lock.h"

namespace phalanx {

/// One `trainer train`: its config, its ranks, its folder. What is wrong is found as early as it
/// can be: by the constructor before a rank starts, by `start` before the folder is made.
///
///   Run run(arguments);
///   return run.in_ranks([&](World& world) { run.start(world)->train(); return 0; });
class Run {
 public:
  /// Reads `CONFIG [CONFIG ...] [key=value ...]` and checks the config and, where this process
  /// starts the ranks, the folder. Prints what the config warns of. Throws UserError.
  explicit Run(Arguments arguments);

  /// Runs `main` in every rank; returns the exit code (run_in_ranks.h).
  int in_ranks(const std::function<int(World&)>& main);

  /// In a rank: builds the trainer, and then takes the run's folder: the one that the user gave,
  /// the one of this job's earlier attempts, or a new one. From then on no other process trains in
  /// it, and its starts.jsonl describes this start; so does its config.yaml, but an earlier one
  /// stays until the run has resumed with the new one. Throws UserError.
  std::unique_ptr<AnyTrainer> start(const World& world);

 private:
  std::unique_ptr<AnyTrainer> start_new_folder(const World& world);
  std::unique_ptr<AnyTrainer> start_in(const World& world, const std::string& exp_dir);
  void take_folder(const World& world, const UserConfig& user, const config::Node& resolved,
                   AnyTrainer& trainer);

  UserConfig user_;
  config::Node resolved_;        ///< Without a folder's name where the user gave none.
  RunPlan plan_;                 ///< Made once; ranks that are forked here have it.
  std::string launcher_;         ///< What starts the ranks, as starts.jsonl calls it.
  std::optional<RunLock> lock_;  ///< Rank 0's, on the folder, until the process ends.
};

}  // namespace phalanx
