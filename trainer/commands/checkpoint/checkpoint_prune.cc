// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/retention/retention.h"
#include "trainer/cli/command.h"
#include "trainer/cli/terminal.h"
#include "trainer/commands/checkpoint/checkpoint_paths.h"
#include "trainer/commands/positionals.h"
#include "trainer/config/tree/schema.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/run/load_config.h"
#include "trainer/run/run_folder.h"
#include "trainer/run/run_lock.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

/// The run's own rules, with what is overridden.
Retention retention_of(const fs::path& config_file, Arguments overrides) {
  std::vector<std::string> arguments{config_file.string()};
  arguments.insert(arguments.end(), overrides.begin(), overrides.end());
  const config::Node resolved =
      resolve_config(load_config(arguments), config_file.parent_path().string());
  const config::Node* section = resolved.find("checkpoint");
  if (section == nullptr) throw UserError("this run's trainer has no section checkpoint");
  return config::read<CheckpointConfig>(*section).retention();
}

int run(const Invocation& invocation) {
  const Arguments arguments = invocation.arguments;
  const fs::path folder = checkpoints_folder_at(arguments.front());
  const fs::path config_file = config_file_of(arguments.front());
  const Retention retention = retention_of(config_file, arguments.subspan(1));
  const bool is_real = !invocation.has("--dry-run");
  std::optional<RunLock> lock;
  if (is_real) lock.emplace(config_file.parent_path());
  const auto doomed = to_prune(folder, retention);
  if (doomed.empty()) fmt::print("nothing is to be removed\n");
  std::vector<std::string> warnings;
  if (is_real) warnings = prune(folder, retention);
  for (const auto& warning : warnings) print_warning(warning);
  for (const int64_t step : doomed) {
    if (!is_real) {
      fmt::print("{} would be removed\n", step_folder_name(step));
    } else if (!fs::exists(folder / step_folder_name(step))) {
      fmt::print("{} is removed\n", step_folder_name(step));
    }
  }
  return warnings.empty() ? 0 : 1;
}

}  // namespace

Command checkpoint_prune_command() {
  return {
      .name = "prune",
      .summary = "remove the checkpoints that need not stay",
      .help = "Applies the rules of the run's config; overrides change them.",
      .examples = {"checkpoint prune runs/my/run_0 checkpoint.keep_last=1"},
      .positionals = {kCheckpoints, kOverrides},
      .flags = {{"--dry-run", "only say what would be removed"}},
      .run = run,
  };
}

}  // namespace phalanx
