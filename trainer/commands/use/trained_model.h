// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/task_model.h"
#include "trainer/cli/command.h"
#include "trainer/config/tree/node.h"
#include "trainer/metrics/console.h"
#include "trainer/ranks/ranks.h"
#include "trainer/run/load_config.h"

namespace phalanx {

/// A model that a command uses, where a path leads to it: in a run, a checkpoint, or a folder of
/// Hugging Face's libraries.
class TrainedModel {
 public:
  /// `takes_average`: of a checkpoint the average of the weights. Throws UserError for a path that
  /// leads to none.
  explicit TrainedModel(std::filesystem::path path, bool takes_average = false);

  const std::filesystem::path& path() const { return path_; }
  bool is_hugging_face() const { return checkpoints_.empty(); }

  /// Whether it is of a run, or of a checkpoint that says which task it was trained for: not a
  /// folder of Hugging Face's libraries, nor what `trainer checkpoint import` wrote of one.
  bool names_task() const;

  /// The config of its run with overrides. For a folder of Hugging Face's libraries, and for a
  /// checkpoint without a run, what that says of the model, and the overrides. `layer` is a config
  /// file that is laid over it, under the overrides. Throws UserError.
  UserConfig config(Arguments overrides,
                    const std::optional<std::filesystem::path>& layer = {}) const;

  /// Its config, resolved. Throws ConfigError with every mistake.
  config::Node resolved(const UserConfig& user) const;
  /// The same without what only training has: task, optimizer, schedule.
  config::Node resolved_for_use(const UserConfig& user) const;

  /// The folder with the files of its tokenizer; nothing where it has none.
  std::optional<std::filesystem::path> tokenizer_folder() const;

  /// The tokens that end a text by what the checkpoint carries; none where it does not say, and for
  /// a folder of Hugging Face's libraries, which generate_settings reads.
  std::vector<int64_t> ends_of_text() const;

  /// The token that begins a text by what the folder or the checkpoint says; nothing where it does
  /// not say.
  std::optional<int64_t> start_of_text() const;

  /// What was loaded.
  struct Loaded {
    /// "runs/a/run_0/checkpoints/step-00000200 (step 200)", with "200, average" where that is
    /// taken.
    std::string name;
    std::vector<std::string> warnings;  ///< Checkpoints that were skipped, and why.
  };

  /// Fills a model of this resolved config, and shows how far that is. Every rank calls it.
  Loaded load(Console& console, const Ranks& ranks, const TaskModel& model,
              const config::Node& resolved) const;

 private:
  Loaded load_checkpoint(Console& console, const Ranks& ranks, const TaskModel& model,
                         const config::Node& resolved) const;
  Loaded load_folder(Console& console, const Ranks& ranks, const TaskModel& model,
                     const config::Node& resolved) const;

  /// What a checkpoint without a run says of the config.
  config::Node config_of_checkpoint() const;
  /// What there is of its checkpoints: the run may be going on, and remove those that were found.
  std::vector<std::filesystem::path> present_checkpoints() const;

  std::filesystem::path path_;
  bool takes_average_;
  std::vector<std::filesystem::path> checkpoints_;  // At first, in the order in which to try them.
  std::optional<std::filesystem::path> config_file_;
};

}  // namespace phalanx
