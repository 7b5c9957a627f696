#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "trainer/checkpoint/load.h"
#include "trainer/commands/build_trainer.h"
#include "trainer/commands/command.h"
#include "trainer/commands/load_config.h"
#include "trainer/commands/run_folder.h"
#include "trainer/commands/run_in_ranks.h"
#include "trainer/commands/terminal.h"
#include "trainer/config/user_error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

void print_values(const VerifiedCheckpoint& checkpoint, const NamedValues& values) {
  fmt::print("{} (step {})\n", checkpoint.path.string(), checkpoint.manifest.state.step);
  for (const auto& [name, value] : values) fmt::print("  {:<16}{}\n", name, value);
}

}  // namespace

int run_evaluate(const Invocation& invocation) {
  const Arguments arguments = invocation.arguments;
  std::error_code error;
  if (fs::is_regular_file(arguments.front(), error)) {
    throw UserError(arguments.front() + " is a file; name the folder of a run or of a checkpoint");
  }
  const FoundCheckpoint found = find_checkpoint(arguments.front());
  for (const auto& warning : found.warnings) print_warning(warning);
  if (!found.newest) throw UserError("there is no good checkpoint in " + arguments.front());

  const fs::path config_file = config_file_of(found.newest->path);
  std::vector<std::string> config{config_file.string()};
  config.insert(config.end(), arguments.begin() + 1, arguments.end());
  const UserConfig user = load_config(config);
  if (user.files.size() > 1) {
    throw UserError("one run or checkpoint is evaluated, with its own config: what is '" +
                    user.files.back().string() + "'?");
  }
  const config::Node resolved = resolve_config(user, config_file.parent_path().string());
  return run_in_ranks(resolved, [&](World& world) {
    const auto trainer = build_trainer(*user.entry, resolved, world, Purpose::evaluation);
    const NamedValues values =
        trainer->evaluate([&](const auto& model) { load_model(*found.newest, model); });
    if (world.ranks().is_first()) print_values(*found.newest, values);
    return 0;
  });
}

}  // namespace phalanx
