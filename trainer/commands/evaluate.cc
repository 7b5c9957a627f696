// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "trainer/api/adapters.h"
#include "trainer/api/task_model.h"
#include "trainer/base/unsigned_nan.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/find.h"
#include "trainer/checkpoint/load_first_good.h"
#include "trainer/cli/command.h"
#include "trainer/cli/terminal.h"
#include "trainer/commands/positionals.h"
#include "trainer/io/byte_progress.h"
#include "trainer/metrics/console.h"
#include "trainer/mixins/checkpoint_config.h"
#include "trainer/mixins/checkpoint_progress.h"
#include "trainer/mixins/first_weights.h"
#include "trainer/run/build_trainer.h"
#include "trainer/run/load_config.h"
#include "trainer/run/run_folder.h"
#include "trainer/run/run_in_ranks.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

void print_values(const Checkpoint& checkpoint, const NamedValues& values) {
  fmt::print("{} (step {})\n", checkpoint.path.string(), checkpoint.manifest.state.step);
  for (const auto& [name, value] : values) {
    fmt::print("  {:<16}{}\n", name, unsigned_nan(value));
  }
}

int run(const Invocation& invocation) {
  const Arguments arguments = invocation.arguments;
  std::error_code error;
  if (fs::is_regular_file(arguments.front(), error)) {
    throw UserError(arguments.front() + " is a file; name the folder of a run or of a checkpoint");
  }
  const std::vector<fs::path> found = candidates_at(arguments.front());
  const fs::path config_file = config_file_of(found.front());
  std::vector<std::string> config{config_file.string()};
  config.insert(config.end(), arguments.begin() + 1, arguments.end());
  const UserConfig user = load_config(config);
  if (user.files.size() > 1) {
    throw UserError("one run or checkpoint is evaluated, with its own config: what is '" +
                    user.files.back().string() + "'?");
  }
  const config::Node resolved = resolve_config(user, config_file.parent_path().string());
  const RunPlan plan = plan_of(*user.entry, resolved);
  return run_in_ranks(plan, resolved, [&](World& world) {
    const auto trainer = build_trainer(*user.entry, plan, resolved, world, Purpose::evaluation);
    // What is measured goes to standard output, alone.
    Console console(STDERR_FILENO);
    LoadedCheckpoint loaded;
    const NamedValues values = trainer->evaluate([&](const TaskModel& model) {
      const bool is_adapted = has_adapters(model.model());
      const auto weights = is_adapted ? checkpoint_config(resolved) : CheckpointConfig();
      const std::string base =
          is_adapted ? load_base(console, world.ranks(), model, weights, resolved) : std::string();
      loaded = load_first_good(world.ranks(), found, [&](const Checkpoint& checkpoint) {
        if (is_adapted) require_same_base(checkpoint, base, weights);
        show_on_first_rank(
            console, world.ranks(), "loading " + checkpoint.path.filename().string(),
            [&](ByteProgress& progress) { load_model(checkpoint, model.views(), &progress); });
      });
    });
    if (!world.ranks().is_first()) return 0;
    for (const auto& warning : loaded.warnings) print_warning(warning);
    print_values(*loaded.checkpoint, values);
    return 0;
  });
}

}  // namespace

Command evaluate_command() {
  return {
      .name = "evaluate",
      .summary = "validate the model of a run or a checkpoint",
      .help =
          "Computes the validation loss of the newest good checkpoint in a run's folder, or of "
          "one checkpoint, with the config of the run.",
      .examples = {"evaluate runs/quickstart/run_0",
                   "evaluate runs/quickstart/run_0/checkpoints/step-00000200"},
      .positionals = {{"FOLDER", Positional::Takes::run}, kOverrides},
      .run = run,
  };
}

}  // namespace phalanx
