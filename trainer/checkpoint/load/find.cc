// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/find.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/load/named.h"
#include "trainer/checkpoint/load/no_checkpoint.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// What `latest` named when the checkpoint was saved; nothing when its manifest cannot be read.
std::optional<std::string> predecessor_of(const fs::path& checkpoint) {
  try {
    return load_manifest(checkpoint).previous;
  } catch (const std::exception&) {
    return {};
  }
}

// The step that was committed on top of `step` just before a crash kept `latest` from moving on.
// A later step that has another predecessor is of a course that was given up by resuming earlier.
std::optional<int64_t> successor_of(int64_t step, const std::vector<int64_t>& newest_first,
                                    const fs::path& checkpoints_dir) {
  for (const int64_t later : newest_first) {
    if (later > step &&
        predecessor_of(checkpoints_dir / step_folder_name(later)) == step_folder_name(step)) {
      return later;
    }
  }
  return {};
}

// In the order in which they are to be tried.
std::vector<int64_t> steps_to_try(const fs::path& checkpoints_dir) {
  std::vector<int64_t> newest_first = committed_steps(checkpoints_dir);
  std::sort(newest_first.begin(), newest_first.end(), std::greater<>());
  const auto latest = parse_step_folder_name(read_latest(checkpoints_dir));
  if (!latest || newest_first.empty()) return newest_first;

  std::vector<int64_t> order{*latest};
  while (const auto next = successor_of(order.front(), newest_first, checkpoints_dir)) {
    order.insert(order.begin(), *next);
  }
  const auto add_those = [&](auto wanted) {
    for (const int64_t step : newest_first) {
      if (wanted(step) && std::find(order.begin(), order.end(), step) == order.end()) {
        order.push_back(step);
      }
    }
  };
  add_those([&](int64_t step) { return step < *latest; });
  add_those([&](int64_t step) { return step > *latest; });
  return order;
}

}  // namespace

std::vector<fs::path> candidates(const fs::path& checkpoints_dir) {
  std::vector<fs::path> paths;
  for (const int64_t step : steps_to_try(checkpoints_dir)) {
    paths.push_back(checkpoints_dir / step_folder_name(step));
  }
  return paths;
}

std::vector<fs::path> candidates_at(const fs::path& given) {
  std::error_code unknown;
  const fs::path path = named_checkpoint(given.has_filename() ? given : given.parent_path());
  if (!fs::is_directory(path, unknown)) refuse_without_checkpoint(path);
  if (fs::exists(path / kManifestFile, unknown)) return {path};
  const fs::path of_run = path / "checkpoints";
  std::vector<fs::path> found = candidates(fs::is_directory(of_run, unknown) ? of_run : path);
  if (!found.empty()) return found;
  refuse_without_checkpoint(path);
}

}  // namespace phalanx
