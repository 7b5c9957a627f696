// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/no_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "trainer/base/nearest.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/load/foreign.h"
#include "trainer/io/hub_name.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWanted =
    "name a run's folder, its checkpoints folder or one checkpoint in it";

bool is_folder(const fs::path& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

bool is_run(const fs::path& folder) {
  std::error_code unknown;
  return is_folder(folder / "checkpoints") ||
         (fs::exists(folder / "config.yaml", unknown) && is_folder(folder / "logs"));
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (is_folder(entry->path())) found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The runs of a folder, or those in its folders, as runs/ has them.
std::vector<fs::path> runs_below(const fs::path& folder) {
  std::vector<fs::path> runs;
  std::vector<fs::path> deeper;
  for (const fs::path& each : folders_in(folder)) {
    if (is_run(each)) {
      runs.push_back(each);
      continue;
    }
    for (const fs::path& inner : folders_in(each)) {
      if (is_run(inner)) deeper.push_back(inner);
    }
  }
  return runs.empty() ? deeper : runs;
}

// "; did you mean 'runs/my/run_0'?": a folder beside the one that is not there.
std::string question_of(const fs::path& missing) {
  std::vector<std::string> names;
  const fs::path parent = missing.has_parent_path() ? missing.parent_path() : ".";
  for (const fs::path& folder : folders_in(parent)) names.push_back(folder.filename().string());
  const auto meant = nearest(missing.filename().string(), names);
  return meant ? fmt::format("; did you mean '{}'?", (missing.parent_path() / *meant).string())
               : std::string();
}

// "'a', 'b', ..."
std::string listed(const std::vector<fs::path>& paths) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, paths.size()); ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", paths[i].string());
  }
  return text + (paths.size() > kShown ? ", ..." : "");
}

}  // namespace

void refuse_without_checkpoint(const fs::path& path) {
  refuse_foreign(path);
  std::error_code unknown;
  if (!fs::exists(path, unknown)) {
    const std::string missing = about_missing(path);
    const bool is_short = missing.ends_with("does not exist");
    throw UserError(
        fmt::format("{}{} {}{}", missing, is_short ? ":" : "; or", kWanted, question_of(path)));
  }
  if (!is_folder(path)) throw UserError(fmt::format("'{}' is a file: {}", path.string(), kWanted));
  if (is_run(path)) {
    throw UserError(fmt::format(
        "the run '{0}' has saved no checkpoint yet: train it on (exp_dir={0}), and have it save "
        "earlier (checkpoint.save_every_n_steps)",
        path.string()));
  }
  if (const auto runs = runs_below(path); !runs.empty()) {
    throw UserError(
        fmt::format("'{}' is a folder of runs: name one of {}", path.string(), listed(runs)));
  }
  throw UserError(fmt::format("there is no checkpoint in '{}': {}", path.string(), kWanted));
}

}  // namespace phalanx
