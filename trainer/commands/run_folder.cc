#include "trainer/commands/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "trainer/checkpoint/layout.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/config/diagnostics.h"
#include "trainer/config/differences.h"
#include "trainer/config/parse.h"
#include "trainer/config/print.h"
#include "trainer/config/resolve.h"
#include "trainer/config/schema.h"
#include "trainer/config/user_error.h"
#include "trainer/core/io/file.h"
#include "trainer/core/training_config.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigFile = "config.yaml";

fs::path run_folder(const std::string& exp_name, int number) {
  return fs::path("runs") / exp_name / fmt::format("run_{}", number);
}

// The step that a run has come to by its newest checkpoint, unless it has reached its limit. Takes
// the manifest's word: reading gigabytes of weights for a note would be too much.
std::optional<int64_t> step_of_unfinished(const fs::path& exp_dir) {
  const fs::path checkpoints = exp_dir / "checkpoints";
  const std::string latest = read_latest(checkpoints);
  if (latest.empty()) return std::nullopt;
  const State state = load_manifest(checkpoints / latest).state;
  config::Diagnostics diagnostics;
  const config::Node config = config::read_file(exp_dir / kConfigFile, diagnostics);
  diagnostics.throw_if_any();
  const config::Node* section = config.find("training");
  if (section == nullptr) return std::nullopt;
  const config::Node training =
      config::resolve(config::declaration<TrainingConfig>(), *section, diagnostics);
  diagnostics.throw_if_any();
  if (config::read<TrainingConfig>(training).limit_reached(state)) return std::nullopt;
  return state.step;
}

// The same; nothing for a run that is damaged, which is no reason not to begin a new one.
std::optional<int64_t> unfinished_step(const fs::path& exp_dir) {
  try {
    return step_of_unfinished(exp_dir);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// What a run's folder says that the run is; nothing for a folder without a run.
std::optional<config::Node> earlier_config(const fs::path& exp_dir) {
  if (!fs::exists(exp_dir / kConfigFile)) return std::nullopt;
  config::Diagnostics diagnostics;
  config::Node earlier = config::read_file(exp_dir / kConfigFile, diagnostics);
  diagnostics.throw_if_any();
  return earlier;
}

}  // namespace

fs::path free_run_folder(const std::string& exp_name) {
  int number = 0;
  while (fs::exists(run_folder(exp_name, number))) ++number;
  return run_folder(exp_name, number);
}

bool create_run_folder(const fs::path& exp_dir) {
  std::error_code error;
  if (exp_dir.has_parent_path()) fs::create_directories(exp_dir.parent_path(), error);
  const bool created = !error && fs::create_directory(exp_dir, error);
  if (error) {
    throw UserError(fmt::format("cannot create the run's folder {}: {}; choose another exp_dir",
                                exp_dir.string(), error.message()));
  }
  return created;
}

std::optional<std::string> unfinished_run(const std::string& exp_name) {
  int count = 0;
  while (fs::exists(run_folder(exp_name, count))) ++count;
  for (int number = count - 1; number >= 0; --number) {
    const fs::path exp_dir = run_folder(exp_name, number);
    if (const auto step = unfinished_step(exp_dir)) {
      return fmt::format("{0} is unfinished at step {1}; exp_dir={0} continues it",
                         exp_dir.string(), *step);
    }
  }
  return std::nullopt;
}

std::optional<std::string> earlier_exp_name(const fs::path& exp_dir) {
  const auto earlier = earlier_config(exp_dir);
  const config::Node* name = earlier ? earlier->find("exp_name") : nullptr;
  if (name == nullptr || !name->is_scalar()) return std::nullopt;
  return name->text;
}

std::optional<int64_t> earlier_global_batch(const fs::path& exp_dir) {
  const fs::path checkpoints = exp_dir / "checkpoints";
  const std::string latest = read_latest(checkpoints);
  if (latest.empty()) return std::nullopt;
  try {
    return load_manifest(checkpoints / latest).global_batch_size;
  } catch (const std::exception&) {
    return std::nullopt;  // damaged: the resume looks for another one, and says so
  }
}

std::vector<std::string> check_against_earlier(const fs::path& exp_dir,
                                               const config::Declaration& declaration,
                                               const config::Node& resolved,
                                               std::span<const std::string> overrides) {
  const auto earlier = earlier_config(exp_dir);
  if (!earlier) return {};
  const auto may_change = [&](const std::string& path) {
    return declaration.resume_may_change(path, resolved) ||
           std::any_of(overrides.begin(), overrides.end(), [&](const std::string& argument) {
             return config::is_forced(argument, path);
           });
  };
  std::vector<std::string> changed;
  std::string refused;
  for (const auto& difference : config::differences(*earlier, resolved)) {
    // A field that the program learned since then had no value that could have changed.
    if (earlier->find_path(difference.path) == nullptr) continue;
    const std::string line =
        fmt::format("{}: was {}, now {}", difference.path, difference.a, difference.b);
    if (may_change(difference.path)) {
      changed.push_back(line);
    } else {
      refused += "\n  " + line;
    }
  }
  if (!refused.empty()) {
    throw UserError(fmt::format(
        "{} holds a run with another config, and these fields may not change under a run:{}\n"
        "Give them their earlier values, choose another exp_dir for a new run, or insist with "
        "++key=value",
        exp_dir.string(), refused));
  }
  return changed;
}

void write_config(const fs::path& exp_dir, const config::Node& resolved) {
  try {
    replace_file(exp_dir / kConfigFile, config::print(resolved, {.with_origins = true}));
  } catch (const IoError& error) {
    throw UserError(fmt::format("{}; or choose another exp_dir", error.what()));
  }
}

}  // namespace phalanx
