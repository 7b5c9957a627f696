// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/checkpoint/checkpoint_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/load/find.h"
#include "trainer/checkpoint/load/named.h"
#include "trainer/checkpoint/load/no_checkpoint.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

bool is_checkpoint(const fs::path& path) {
  std::error_code unknown;
  return fs::exists(path / kManifestFile, unknown);
}

}  // namespace

fs::path checkpoints_folder_at(const fs::path& path) {
  std::error_code unknown;
  const fs::path of_run = path / "checkpoints";
  fs::path folder = fs::is_directory(of_run, unknown) ? of_run : path;
  if (is_checkpoint(folder)) {
    throw UserError(fmt::format(
        "'{}' is one checkpoint: name the run's folder or its checkpoints folder", path.string()));
  }
  if (fs::is_directory(folder, unknown)) return folder;
  refuse_without_checkpoint(path);
}

std::vector<fs::path> checkpoints_at(const fs::path& given) {
  const fs::path path = named_checkpoint(given.has_filename() ? given : given.parent_path());
  if (is_checkpoint(path)) return {path};
  const fs::path folder = checkpoints_folder_at(path);
  std::vector<int64_t> steps = committed_steps(folder);
  if (steps.empty()) candidates_at(path);  // says what is missing
  std::sort(steps.begin(), steps.end());
  std::vector<fs::path> paths;
  for (const int64_t step : steps) paths.push_back(folder / step_folder_name(step));
  return paths;
}

fs::path checkpoint_at(const fs::path& path) { return candidates_at(path).front(); }

}  // namespace phalanx
