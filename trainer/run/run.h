// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "trainer/cli/command.h"
#include "trainer/config/tree/node.h"
#include "trainer/launch/launcher.h"
#include "trainer/loop/trainer_setup.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/plan/run_plan.h"
#include "trainer/ranks/environment/environment.h"
#include "trainer/run/ends.h"
#include "trainer/run/join_check.h"
#include "trainer/run/last_end.h"
#include "trainer/run/load_config.h"
#include "trainer/run/products.h"
#include "trainer/run/run_lock.h"
#include "trainer/run/run_progress.h"

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
  /// The same by a launcher that counts instead of the config's; starts.jsonl calls it so.
  Run(Arguments arguments, std::shared_ptr<Launcher> launcher, std::string launcher_name);

  /// Runs `main` in every rank and returns the exit code. Once this start has taken its folder, it
  /// records its end there, and prints a failure with the command that goes on. Throws UserError or
  /// std::runtime_error for a failure before that.
  int in_ranks(const std::function<int(World&)>& main);

  /// In a rank: builds the trainer, and then takes the run's folder: the one that the user gave,
  /// the one of this job's earlier attempts, or a new one. From then on no other process trains in
  /// it, and its starts.jsonl describes this start; so does its config.yaml, but an earlier one
  /// stays until the run has resumed with the new one. Throws UserError.
  std::unique_ptr<AnyTrainer> start(const World& world);

  /// In rank 0: why its trainer has ended before the run's limits; empty: it has not.
  void note_early_end(const std::string& why) { progress_.note_early_end(why); }

  /// For a launch of several nodes, before a rank is started: what they compare, and whether the
  /// run of another node can go on with this one (join_check.h).
  std::string description_for_nodes() const { return phalanx::description_for_nodes(user_); }
  std::string why_not_join(const JoinedRun& run) const {
    return phalanx::why_not_join(user_, plan_, run);
  }
  /// How far the ranks are that this process has forked; for any process forked since.
  const RunProgress& progress() const { return progress_; }

 private:
  std::unique_ptr<AnyTrainer> start_new_folder(const World& world);
  std::unique_ptr<AnyTrainer> start_in(const World& world, const std::string& exp_dir);
  void take_folder(const World& world, const UserConfig& user, const config::Node& resolved,
                   AnyTrainer& trainer);
  int conclude(const BegunStart& begun, RankOutcome outcome) const;
  End end_of(const BegunStart& begun, const RankOutcome& outcome) const;
  void note_failed_attempt(const RankOutcome& outcome);

  struct FailedAttempt {
    std::string exp_dir;
    End end;
  };

  UserConfig user_;
  config::Node resolved_;                ///< Without a folder's name where the user gave none.
  RunPlan plan_;                         ///< Made once; ranks that are forked here have it.
  ProductChoice products_;               ///< Made before ranks are there; rank 0's counts.
  std::shared_ptr<Launcher> launcher_;   ///< What starts the ranks.
  std::optional<Environment> place_;     ///< That others have given to this process.
  std::string launcher_name_;            ///< As starts.jsonl calls it.
  RunProgress progress_;                 ///< Shared with the ranks that this process forks.
  std::optional<RunLock> lock_;          ///< Rank 0's, on the folder, until the process ends.
  std::optional<FailedAttempt> failed_;  ///< The last of those that were followed by another one.
  std::optional<LastEnd> last_end_;      ///< Set for a rank alone, once it has the folder.
};

}  // namespace phalanx
