// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/ranks/environment/environment.h"

namespace phalanx {

struct Manifest;

// What stands in a run's folder, beside logs and checkpoints.
inline constexpr std::string_view kConfigFile = "config.yaml";
inline constexpr std::string_view kStartsFile = "starts.jsonl";
inline constexpr std::string_view kEndsFile = "ends.jsonl";
inline constexpr std::string_view kLockFile = "run.lock";
/// And the folder of the checkpoints.
inline constexpr std::string_view kCheckpointsFolder = "checkpoints";

/// The first `runs/<exp_name>/run_N` that does not exist; nothing is created.
std::filesystem::path free_run_folder(const std::string& exp_name);

/// Throws UserError where a run would write over what is not its own: in a file's place, in a
/// folder that holds other things than a run, or within another run's folder.
void require_usable_folder(const std::filesystem::path& exp_dir);

/// Creates a run's folder and its parents. False when it exists already: somebody else took it.
/// Throws UserError when it cannot be created.
bool create_run_folder(const std::filesystem::path& exp_dir);

/// A message naming the newest run of that name that has a checkpoint but has not reached its
/// limit, and the argument that continues it; nothing when there is none. A run that is being
/// trained needs no continuing.
std::optional<std::string> unfinished_run(const std::string& exp_name);

/// The run of that name that a batch job has trained before it was requeued: the first that is
/// unfinished, else the last. Nothing where it has begun none. Waits for an earlier attempt that
/// still trains (await_earlier_attempt, as the next two parameters).
std::optional<std::filesystem::path> run_of_job(const std::string& exp_name, const BatchJob& job,
                                                std::chrono::milliseconds timeout,
                                                const std::function<void()>& meanwhile);

/// A message for a folder that does not exist yet, but stands beside folders of runs: it may be one
/// of these, misspelt. Nothing for any other folder.
std::optional<std::string> new_run_beside_others(const std::filesystem::path& exp_dir);

/// The name of the newest committed checkpoint in a run's folder; empty without one.
std::string newest_checkpoint(const std::filesystem::path& exp_dir);

/// What the newest checkpoint in a run's folder says of itself, unverified; nothing without one, or
/// where it is damaged: the resume looks for another one then, and says so.
std::optional<Manifest> newest_manifest(const std::filesystem::path& exp_dir);

/// The command that writes config.yaml of a run anew as its newest checkpoint has it.
std::string command_to_restore_config(const std::filesystem::path& exp_dir);

/// How to write the lost or damaged config.yaml of a run anew; empty where it has no checkpoint.
std::string advice_to_restore_config(const std::filesystem::path& exp_dir);

/// Throws UserError for a run's config.yaml that cannot be read, with how to write it anew. Another
/// file says itself what is wrong in it.
void require_readable(const std::filesystem::path& config_file);

/// The config that a user means by a path: the file itself, or that of a run, which its folder, its
/// `checkpoints`, one of these and `latest` stand for. Throws UserError for another folder.
std::filesystem::path config_file_of(const std::filesystem::path& path);

}  // namespace phalanx
