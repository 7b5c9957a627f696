// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "trainer/checkpoint/retention/retention.h"
#include "trainer/config/tree/forward.h"
#include "trainer/config/tree/interval.h"

namespace phalanx {

/// Whether a run whose folder holds checkpoints goes on from them, and whether one whose
/// checkpoints are gone may begin anew.
enum class Resume { automatic, if_any, never };

/// What a run does when a checkpoint cannot be saved.
enum class OnSaveError { stop, warn };

/// What happens when a checkpoint is due while the one before is still being written.
enum class WhileSaving { wait, skip };

/// Which rows of a vocabulary that differs are taken of what a run begins with.
enum class LoadVocabulary { by_token, by_id };

/// The section `checkpoint`: when to save, what to keep, whether to go on.
struct CheckpointConfig {
  std::optional<int64_t> save_every_n_steps = 200;
  std::optional<config::Interval> save_every_n_seconds;
  std::optional<int64_t> keep_last = 3;
  bool only_save_most_recent = false;
  std::optional<int64_t> keep_every_n_steps;
  std::optional<KeepBest> keep_best;
  bool async = false;
  WhileSaving while_saving = WhileSaving::wait;
  bool sha256 = false;
  OnSaveError on_error = OnSaveError::stop;
  Resume resume = Resume::automatic;
  bool data_may_change = false;
  std::optional<std::filesystem::path> load_from;
  bool load_model_only = true;
  bool load_strict = true;
  std::map<std::string, std::string> load_prefixes;
  std::optional<LoadVocabulary> load_vocabulary;

  /// What stays, beside the checkpoint that a run came from.
  Retention retention() const;

  static void describe(config::Schema<CheckpointConfig>& s);
};

/// The section of a config whose composition has it.
CheckpointConfig checkpoint_config(const config::Node& resolved);

}  // namespace phalanx
