// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/layout.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <tuple>

#include "trainer/base/user_error.h"
#include "trainer/io/file.h"
#include "trainer/io/file_lock.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-";
constexpr size_t kStepDigits = 8;

// The entries of a folder; none when it does not exist.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (auto entry = fs::directory_iterator(folder, error); entry != fs::directory_iterator();
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw IoError("list the folder", folder, error.value());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Whether a process works on this entry: it would hold its lock. Nothing where the file system
// keeps no locks.
std::optional<bool> in_use(const fs::path& path) {
  try {
    return !File(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).try_lock();
  } catch (const IoError& error) {
    if (lacks_locks(error)) return std::nullopt;
    throw;
  }
}

// "step-00000200.tmp-4711" and ".tmp-": the part before the mark, empty when the name is another's.
std::string owner_of(const std::string& name, std::string_view mark) {
  const size_t place = name.find(mark);
  if (place == std::string::npos) return {};
  const std::string owner = name.substr(0, place);
  return owner == kLatestFile || parse_step_folder_name(owner) ? owner : std::string();
}

}  // namespace

std::string step_folder_name(int64_t step) { return fmt::format("step-{:08d}", step); }

std::optional<int64_t> parse_step_folder_name(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return {};
  const std::string_view digits = name.substr(kStepPrefix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  if (step < 0 || digits.size() < kStepDigits || step_folder_name(step) != name) return {};
  return step;
}

std::vector<int64_t> committed_steps(const fs::path& checkpoints_dir) {
  std::vector<std::tuple<fs::file_time_type, int64_t>> found;
  for (const fs::path& entry : entries_of(checkpoints_dir)) {
    const auto step = parse_step_folder_name(entry.filename().string());
    if (!step) continue;
    // A folder without a manifest was damaged by somebody: it counts as the oldest.
    std::error_code no_manifest;
    const auto time = fs::last_write_time(entry / kManifestFile, no_manifest);
    found.emplace_back(no_manifest ? fs::file_time_type::min() : time, *step);
  }
  std::sort(found.begin(), found.end());
  std::vector<int64_t> steps;
  for (const auto& [time, step] : found) steps.push_back(step);
  return steps;
}

std::string read_latest(const fs::path& checkpoints_dir) {
  constexpr uint64_t kLongest = 64;
  const fs::path path = checkpoints_dir / kLatestFile;
  if (!fs::is_regular_file(path) || fs::file_size(path) > kLongest) return {};
  std::string text = read_text(path, kLongest);
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return parse_step_folder_name(text) ? text : std::string();
}

void point_latest_at(const fs::path& checkpoints_dir, int64_t step) {
  replace_file(checkpoints_dir / kLatestFile, step_folder_name(step) + "\n");
}

std::string repair_latest(const fs::path& checkpoints_dir, int64_t step) {
  try {
    if (read_latest(checkpoints_dir) != step_folder_name(step)) {
      point_latest_at(checkpoints_dir, step);
    }
    return {};
  } catch (const std::exception& error) {
    return fmt::format("'{}' does not name '{}': {}", kLatestFile, step_folder_name(step),
                       error.what());
  }
}

std::vector<std::string> clean_leftovers(const fs::path& checkpoints_dir) {
  std::vector<std::string> lines;
  for (const fs::path& entry : entries_of(checkpoints_dir)) {
    const std::string name = entry.filename().string();
    const std::string replaced = owner_of(name, kReplacedMark);
    if (!replaced.empty() && !fs::exists(checkpoints_dir / replaced)) {
      rename_path(entry, checkpoints_dir / replaced);
      lines.push_back(fmt::format("put '{}' back: its replacement was cut short", replaced));
      continue;
    }
    const bool unfinished = !owner_of(name, kUnfinishedMark).empty();
    const bool deleted = !owner_of(name, kDeletedMark).empty();
    if (!unfinished && !deleted && replaced.empty()) continue;
    const std::optional<bool> is_used = unfinished ? in_use(entry) : false;
    if (!is_used) {
      lines.push_back(
          fmt::format("'{}' stays: this file system keeps no locks, which would tell whether a "
                      "process still writes it; remove it if none does",
                      name));
    }
    if (is_used.value_or(true)) continue;
    remove_path(entry);
    lines.push_back(fmt::format("removed '{}', left by a process that died", name));
  }
  return lines;
}

void require_writable(const fs::path& checkpoints_dir) {
  const fs::path probe = aside(checkpoints_dir / kLatestFile);
  try {
    create_folders(checkpoints_dir);
    File file(probe, O_WRONLY | O_CREAT | O_TRUNC);
    file.write("probe\n");
    file.sync();
    remove_path(probe);
  } catch (const std::exception& error) {
    std::error_code ignored;
    fs::remove(probe, ignored);
    throw UserError(fmt::format("checkpoints cannot be kept in '{}': {}", checkpoints_dir.string(),
                                error.what()));
  }
}

}  // namespace phalanx
