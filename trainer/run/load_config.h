// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/cli/command.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/unknown_keys.h"
#include "trainer/registry/trainers.h"

namespace phalanx {

/// Config files and overrides as the user gave them: read and merged, not resolved yet.
struct UserConfig {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> overrides;
  config::Node tree;
  config::Diagnostics mistakes;         ///< Found so far; resolving adds its own.
  std::string trainer;                  ///< The `name` that picks a registered trainer.
  const TrainerEntry* entry = nullptr;  ///< That trainer.
};

/// Whether the user gave this field of the top level a value.
bool is_given(const UserConfig& user, std::string_view field);

/// Reads `CONFIG [CONFIG ...] [key=value ...]`. Throws UserError for what leaves nothing to
/// resolve: a file that cannot be read, a trainer that is not there, a folder that a section takes
/// values from and that does not fit. Other mistakes wait for the resolution, so that the user sees
/// all of them at once.
UserConfig load_config(Arguments arguments);

/// The same of a config that no file holds.
UserConfig config_of(config::Node tree, Arguments overrides);

/// The experiment's name: `exp_name` where given, else the configs' stems and the sorted overrides.
std::string experiment_name(const UserConfig& user);

/// The resolved config of a run in `exp_dir`; without one it is what the user gave, or stays `???`,
/// and values that refer to it hold a mark in its place. Throws ConfigError with every mistake.
config::Node resolve_config(const UserConfig& user, const std::optional<std::string>& exp_dir);

/// The same without what only training has (task, optimizer, lr_scheduler), for a model that is
/// used.
config::Node resolve_for_use(const UserConfig& user, const std::string& exp_dir);

/// The same without an exp_dir, once at the start of a command: prints what the config warns of.
config::Node checked_config(const UserConfig& user);

/// What an unknown key of a config is called in other trainers (trainer/words).
config::KnownWord word_of_others(std::string_view path);

/// A printed config whose values refer to `${exp_dir}` again where they hold that mark.
std::string refer_to_exp_dir(std::string printed);

}  // namespace phalanx
