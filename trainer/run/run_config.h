// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/tree/node.h"
#include "trainer/run/load_config.h"

namespace phalanx {

/// A field that a start of a run gives another value than the one before.
struct ConfigChange {
  std::string path;                    ///< "training.max_steps".
  std::optional<config::Node> before;  ///< Nothing where the field was absent.
  std::optional<config::Node> after;   ///< Nothing where it now is.
  bool is_forced = false;              ///< By `++`: no other way lets a resume change it.
};

/// "training.max_steps: was 3, now 4 (command line)": what changed, and where that was written.
std::string to_string(const ConfigChange& change);

/// The resolved config of the run in this folder, as its newest checkpoint has it, and without one
/// as config.yaml has it; nothing without a run, or for one that this trainer's config does not
/// describe.
std::optional<config::Node> earlier_config(const std::filesystem::path& exp_dir,
                                           const UserConfig& user);

/// The exp_name that a run in this folder has, if there is one: a resume keeps it.
std::optional<std::string> earlier_exp_name(const std::filesystem::path& exp_dir);

/// The fields that the run in this folder goes on without (config::fields_without_value), one a
/// line.
std::string fields_earlier_lacks(const std::filesystem::path& exp_dir, const UserConfig& user);

/// The fields of `resolved`, the config of a start in `exp_dir`, that differ from the last start of
/// the run there. That start's values are those that its newest checkpoint was trained with, with
/// the changes of later starts (told_changes); without a checkpoint those of config.yaml. An edit
/// of config.yaml does not count as a start. Texts that name the run's folder may follow it. Throws
/// UserError naming what may not change under a run, unless one of the user's overrides forces it
/// (`++key=value`), or a start since the checkpoint was let through with it.
std::vector<ConfigChange> check_against_earlier(const std::filesystem::path& exp_dir,
                                                const UserConfig& user,
                                                const config::Node& resolved);

/// Writes config.yaml, whole or not at all: the config `resolved` with where each value came from,
/// without the folder, so that training with it makes another run that repeats this one. What
/// refers to `${exp_dir}` still does. A file that says the same already stays, with the origins
/// that it tells; one that is replaced hands on its origins of the values that were read from it.
/// Throws UserError when the folder cannot be written.
void write_config(const std::filesystem::path& exp_dir, const UserConfig& user,
                  const config::Node& resolved);

}  // namespace phalanx
