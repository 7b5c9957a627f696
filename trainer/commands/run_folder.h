#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "trainer/config/declaration.h"
#include "trainer/config/node.h"

namespace phalanx {

/// The first `runs/<exp_name>/run_N` that does not exist; nothing is created.
std::filesystem::path free_run_folder(const std::string& exp_name);

/// Creates a run's folder and its parents. False when it exists already: somebody else took it.
/// Throws UserError when it cannot be created.
bool create_run_folder(const std::filesystem::path& exp_dir);

/// A message naming the newest run of that name that has a checkpoint but has not reached its
/// limit, and the argument that continues it; nothing when there is none.
std::optional<std::string> unfinished_run(const std::string& exp_name);

/// The exp_name that a run in this folder has, if there is one: a resume keeps it.
std::optional<std::string> earlier_exp_name(const std::filesystem::path& exp_dir);

/// Compares `resolved` with the config.yaml that is in the folder, if any. Throws UserError naming
/// what may not change under a run, unless one of `overrides` forces it (`++key=value`); returns
/// lines on what did change.
std::vector<std::string> check_against_earlier(const std::filesystem::path& exp_dir,
                                               const config::Declaration& declaration,
                                               const config::Node& resolved,
                                               std::span<const std::string> overrides = {});

/// The samples of a step of the run in this folder, by its newest checkpoint; nothing without one.
std::optional<int64_t> earlier_global_batch(const std::filesystem::path& exp_dir);

/// Writes config.yaml with where each value came from, whole or not at all. Throws UserError when
/// the folder cannot be written.
void write_config(const std::filesystem::path& exp_dir, const config::Node& resolved);

}  // namespace phalanx
