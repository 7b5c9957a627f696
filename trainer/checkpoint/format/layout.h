// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kLatestFile = "latest";
/// In a checkpoint: what its task gave it to carry.
inline constexpr std::string_view kAttachmentsFolder = "attachments";

// What stands between an entry's name and the process id while it is not, or no longer, committed.
inline constexpr std::string_view kUnfinishedMark = ".tmp-";
inline constexpr std::string_view kReplacedMark = ".replaced-";
inline constexpr std::string_view kDeletedMark = ".deleted-";

/// "step-00000200".
std::string step_folder_name(int64_t step);

/// The step of a committed checkpoint's folder name; nothing for every other name.
std::optional<int64_t> parse_step_folder_name(std::string_view name);

/// The steps with a committed checkpoint in order of commit, oldest first; empty when the folder
/// does not exist. Throws IoError.
std::vector<int64_t> committed_steps(const std::filesystem::path& checkpoints_dir);

/// The name in `latest`, whether or not that checkpoint exists; empty when there is no such file or
/// it holds no checkpoint's name.
std::string read_latest(const std::filesystem::path& checkpoints_dir);

/// Has `latest` name a checkpoint, durably and at once. Throws IoError.
void point_latest_at(const std::filesystem::path& checkpoints_dir, int64_t step);

/// The same for one that was found by what it came after, since a kill kept `latest` from moving
/// on. What keeps `latest` from it now harms no run: it is returned as a warning, empty where all
/// is well.
std::string repair_latest(const std::filesystem::path& checkpoints_dir, int64_t step);

/// Removes what processes that died while saving or pruning left behind, and finishes a replacement
/// that was cut short. What a live process works on stays: it holds a lock. So does what may be
/// such a process's, on a file system without locks. Returns one line for each thing done, or left
/// there for want of locks. Throws IoError.
std::vector<std::string> clean_leftovers(const std::filesystem::path& checkpoints_dir);

/// Creates the folder if need be and tries to write a file there. Throws UserError saying why
/// checkpoints cannot be kept there: better at the start than after hours.
void require_writable(const std::filesystem::path& checkpoints_dir);

}  // namespace phalanx
