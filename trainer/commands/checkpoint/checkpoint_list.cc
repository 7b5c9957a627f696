// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/unsigned_nan.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/load/named.h"
#include "trainer/cli/columns.h"
#include "trainer/cli/command.h"
#include "trainer/commands/checkpoint/checkpoint_paths.h"
#include "trainer/commands/positionals.h"
#include "trainer/io/bytes_text.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

std::string saved_at(const fs::path& checkpoint) {
  struct stat status {};
  if (::stat((checkpoint / kManifestFile).c_str(), &status) != 0) return {};
  std::tm time{};
  ::localtime_r(&status.st_mtime, &time);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", time);
}

std::string metrics_text(const NamedValues& metrics) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : metrics) {
    texts.push_back(fmt::format("{} {:.5g}", name, unsigned_nan(value)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// How a row is marked: "step-00000200 * best".
std::string marked(const fs::path& path, const std::string& latest, std::optional<int64_t> best) {
  const std::string name = path.filename().string();
  const bool is_best = best && parse_step_folder_name(name) == best;
  return name + (name == latest ? " *" : "") + (is_best ? " best" : "");
}

std::vector<std::string> row_of(const fs::path& path, const std::string& name) {
  try {
    const Checkpoint checkpoint = open_checkpoint(path);
    require_files(checkpoint);
    uint64_t bytes = fs::file_size(path / kManifestFile);
    for (const auto& [name, file] : listed_files(checkpoint.manifest)) bytes += file.size;
    return {name,
            saved_at(path),
            bytes_text(bytes),
            std::to_string(checkpoint.manifest.world_size),
            std::to_string(checkpoint.manifest.state.samples),
            metrics_text(checkpoint.manifest.metrics),
            "committed"};
  } catch (const std::exception& error) {
    return {name, saved_at(path), {}, {}, {}, {}, fmt::format("damaged: {}", error.what())};
  }
}

int run(const Invocation& invocation) {
  std::vector<fs::path> paths = checkpoints_at(invocation.arguments.front());
  const fs::path folder = paths.front().parent_path();
  const std::string latest = read_latest(folder);
  const std::optional<int64_t> best = best_step_of(folder);
  const int64_t shown =
      std::min(invocation.count("--last").value_or(std::ssize(paths)), std::ssize(paths));
  paths.erase(paths.begin(), paths.end() - shown);
  std::vector<std::vector<std::string>> rows{
      {"checkpoint", "saved", "size", "ranks", "samples", "metrics", "health"}};
  for (const fs::path& path : paths) rows.push_back(row_of(path, marked(path, latest, best)));
  fmt::print("{}", table(rows));
  return 0;
}

}  // namespace

Command checkpoint_list_command() {
  return {
      .name = "list",
      .summary = "a run's checkpoints: when, how large, what was measured, health",
      .help =
          "Health is judged by manifests, sizes and headers alone, so it is \"committed\" at best; "
          "`checkpoint verify` reads all bytes. A star marks the newest, and \"best\" the one that "
          "RUN@best names.",
      .examples = {"checkpoint list runs/quickstart/run_0"},
      .positionals = {kCheckpoints},
      .flags = {{.name = "--last",
                 .summary = "only the newest N of them",
                 .takes = Flag::Takes::count}},
      .run = run,
  };
}

}  // namespace phalanx
