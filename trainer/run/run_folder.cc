// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <system_error>
#include <vector>

#include "trainer/base/joined.h"
#include "trainer/base/nearest.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/config/syntax/argument.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"
#include "trainer/io/file.h"
#include "trainer/loop/next_command.h"
#include "trainer/loop/training_config.h"
#include "trainer/run/earlier_attempt.h"
#include "trainer/run/early_end.h"
#include "trainer/run/run_lock.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

fs::path run_folder(const std::string& exp_name, int number) {
  return fs::path("runs") / exp_name / fmt::format("run_{}", number);
}

bool is_there(const fs::path& path) {
  std::error_code unknown;
  return fs::exists(path, unknown);
}

// A config.yaml alone may be anybody's.
bool holds_run(const fs::path& folder) {
  return is_there(folder / kConfigFile) &&
         (is_there(folder / kStartsFile) || is_there(folder / kCheckpointsFolder));
}

// The names of the runs in a folder.
std::vector<std::string> runs_in(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (holds_run(entry->path())) names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The first few, and a sign where there are more.
std::string listed(std::vector<std::string> names) {
  constexpr size_t kShown = 3;
  if (names.size() > kShown) {
    names.resize(kShown);
    names.emplace_back("...");
  }
  return joined(names);
}

// What a run that was killed in its first moments leaves.
bool is_leftover(const std::string& name) {
  return name == kLockFile || name == kStartsFile || name == kEndsFile ||
         name.starts_with(std::string(kConfigFile) + ".tmp-");
}

std::vector<std::string> foreign_files(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!is_leftover(name)) names.push_back(name);
  }
  if (error) {
    throw UserError(fmt::format("cannot read the folder {}: {}; choose another exp_dir",
                                folder.string(), error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

void require_own_folder(const fs::path& exp_dir) {
  if (holds_run(exp_dir)) return;
  if (!is_there(exp_dir / kConfigFile)) {
    if (const std::string advice = advice_to_restore_config(exp_dir); !advice.empty()) {
      throw UserError(fmt::format("{} holds a run whose {} is lost: bring it back, {}",
                                  exp_dir.string(), kConfigFile, advice));
    }
  }
  const std::vector<std::string> names = foreign_files(exp_dir);
  if (names.empty()) return;
  if (const std::vector<std::string> runs = runs_in(exp_dir); !runs.empty()) {
    throw UserError(fmt::format(
        "{} is a folder of runs ({}), and no run itself: to go on with one, name it, as in {}; for "
        "a new run choose an exp_dir that is empty, or not there yet",
        exp_dir.string(), listed(runs),
        config::argument("exp_dir", (exp_dir / runs.front()).string())));
  }
  throw UserError(fmt::format(
      "{} holds other files than a run's ({}), and a run writes into no folder but its own; choose "
      "an exp_dir that is empty, or not there yet",
      exp_dir.string(), listed(names)));
}

void require_outside_of_runs(const fs::path& exp_dir) {
  std::error_code unknown;
  fs::path folder = fs::weakly_canonical(fs::absolute(exp_dir), unknown);
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    if (!holds_run(folder)) continue;
    throw UserError(fmt::format(
        "{} lies within the folder of another run, {}; to go on with that run, write {}; for a new "
        "one choose an exp_dir outside of it, or start from another folder",
        exp_dir.string(), folder.string(), config::argument("exp_dir", folder.string())));
  }
}

// Where a run stands that has neither reached its limit nor ended early, and the command that goes
// on with it.
struct Unfinished {
  int64_t step = 0;
  std::string command;
};

// By its newest checkpoint. Takes the manifest's word: reading gigabytes of weights for a note
// would be too much.
std::optional<Unfinished> read_unfinished(const fs::path& exp_dir) {
  const auto newest = newest_manifest(exp_dir);
  if (!newest) return std::nullopt;
  config::Diagnostics diagnostics;
  const config::Node config = config::read_file(exp_dir / kConfigFile, diagnostics);
  diagnostics.throw_if_any();
  const config::Node* section = config.find("training");
  if (section == nullptr) return std::nullopt;
  const config::Node training =
      config::resolve(config::declaration<TrainingConfig>(), *section, diagnostics);
  diagnostics.throw_if_any();
  const bool is_over = config::read<TrainingConfig>(training).limit_reached(newest->state) ||
                       !recorded_early_end(exp_dir).empty();
  if (is_over && !newest->state.validation_due) return std::nullopt;
  return Unfinished{.step = newest->state.step,
                    .command = command_to_resume(exp_dir.string(), config)};
}

// The same; nothing for a run that is damaged, which is no reason not to begin a new one.
std::optional<Unfinished> find_unfinished(const fs::path& exp_dir) {
  try {
    return read_unfinished(exp_dir);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// Those that are not there yet, the innermost first.
std::vector<fs::path> missing_folders(fs::path folder) {
  std::vector<fs::path> missing;
  for (; !folder.empty() && !is_there(folder); folder = folder.parent_path()) {
    missing.push_back(folder);
  }
  return missing;
}

// A power cut could take the folder's name, and with it what is durable in the folder.
void sync_entry(const fs::path& folder) {
  try {
    sync_folder(folder.parent_path());
  } catch (const IoError& error) {
    // One may be allowed to create things where one may not look.
    if (error.error() != EACCES) throw;
  }
}

}  // namespace

fs::path free_run_folder(const std::string& exp_name) {
  int number = 0;
  while (fs::exists(run_folder(exp_name, number))) ++number;
  return run_folder(exp_name, number);
}

void require_usable_folder(const fs::path& exp_dir) {
  if (exp_dir.empty()) throw UserError("exp_dir is empty; name a folder");
  const std::string name = exp_dir.string();
  if (std::any_of(name.begin(), name.end(), [](unsigned char c) { return std::iscntrl(c) != 0; })) {
    throw UserError("exp_dir holds a line end or another control character; choose another one");
  }
  require_outside_of_runs(exp_dir);
  std::error_code unknown;
  if (fs::is_directory(exp_dir, unknown)) {
    require_own_folder(exp_dir);
  } else if (is_there(exp_dir)) {
    throw UserError(
        fmt::format("{} is a file, not a folder; choose another exp_dir", exp_dir.string()));
  }
}

bool create_run_folder(const fs::path& exp_dir) {
  const fs::path parent = exp_dir.parent_path();
  std::error_code error;
  const std::vector<fs::path> missing = missing_folders(parent);
  if (!parent.empty()) fs::create_directories(parent, error);
  const bool created = !error && fs::create_directory(exp_dir, error);
  if (error) {
    throw UserError(fmt::format("cannot create the run's folder {}: {}; choose another exp_dir",
                                exp_dir.string(), error.message()));
  }
  sync_entry(exp_dir);
  for (const fs::path& folder : missing) sync_entry(folder);
  return created;
}

std::optional<std::string> unfinished_run(const std::string& exp_name) {
  int count = 0;
  while (fs::exists(run_folder(exp_name, count))) ++count;
  for (int number = count - 1; number >= 0; --number) {
    const fs::path exp_dir = run_folder(exp_name, number);
    const auto unfinished = find_unfinished(exp_dir);
    if (!unfinished || holder_of_run(exp_dir)) continue;
    return fmt::format("{} is unfinished at step {}; {} continues it", exp_dir.string(),
                       unfinished->step, unfinished->command);
  }
  return std::nullopt;
}

std::optional<fs::path> run_of_job(const std::string& exp_name, const BatchJob& job,
                                   std::chrono::milliseconds timeout,
                                   const std::function<void()>& meanwhile) {
  std::optional<fs::path> last;
  for (int number = 0; fs::exists(run_folder(exp_name, number)); ++number) {
    const fs::path exp_dir = run_folder(exp_name, number);
    if (job_of_last_start(exp_dir).name != job.name) continue;
    await_earlier_attempt(exp_dir, job, timeout, meanwhile);
    if (holder_of_run(exp_dir)) continue;  // another step of this attempt
    if (find_unfinished(exp_dir)) return exp_dir;
    last = exp_dir;
  }
  return last;
}

std::optional<std::string> new_run_beside_others(const fs::path& exp_dir) {
  if (is_there(exp_dir)) return std::nullopt;
  fs::path given = exp_dir;
  if (!given.has_filename()) given = given.parent_path();  // it ended with a separator
  const fs::path parent = given.parent_path();
  const std::vector<std::string> names = runs_in(parent.empty() ? "." : parent);
  if (names.empty()) return std::nullopt;
  const auto meant = nearest(given.filename().string(), names);
  const std::string question =
      meant ? fmt::format("; did you mean {}?",
                          config::argument("exp_dir", (parent / *meant).string()))
            : "";
  return fmt::format(
      "{} does not exist: a new run starts there; its parent folder has the runs {}{}",
      exp_dir.string(), listed(names), question);
}

std::string newest_checkpoint(const fs::path& exp_dir) {
  return read_latest(exp_dir / kCheckpointsFolder);
}

std::optional<Manifest> newest_manifest(const fs::path& exp_dir) {
  const std::string latest = newest_checkpoint(exp_dir);
  if (latest.empty()) return std::nullopt;
  try {
    return load_manifest(exp_dir / kCheckpointsFolder / latest);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string command_to_restore_config(const fs::path& exp_dir) {
  return fmt::format("trainer checkpoint inspect {} --config | tail -n 1 > {}",
                     config::shell_word(exp_dir.string()),
                     config::shell_word((exp_dir / kConfigFile).string()));
}

std::string advice_to_restore_config(const fs::path& exp_dir) {
  if (newest_checkpoint(exp_dir).empty()) return {};
  return "or write it anew from the newest checkpoint: " + command_to_restore_config(exp_dir);
}

void require_readable(const fs::path& config_file) {
  if (config_file.filename() != kConfigFile) return;
  const std::string advice = advice_to_restore_config(config_file.parent_path());
  if (advice.empty()) return;
  try {
    config::Diagnostics diagnostics;
    config::read_file(config_file, diagnostics);
    diagnostics.throw_if_any();
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}\nthe run's own {} is damaged: repair it, {}", error.what(),
                                kConfigFile, advice));
  }
}

fs::path config_file_of(const fs::path& path) {
  fs::path run = fs::absolute(path).lexically_normal();
  if (!run.has_filename()) run = run.parent_path();  // it ended with a separator
  const bool in_checkpoints = run.parent_path().filename() == kCheckpointsFolder;
  if (!fs::is_directory(run) && !(in_checkpoints && run.filename() == kLatestFile)) return path;
  if (in_checkpoints) run = run.parent_path();
  if (run.filename() == kCheckpointsFolder) run = run.parent_path();
  if (is_there(run / kConfigFile)) return run / kConfigFile;
  if (const std::string advice = advice_to_restore_config(run); !advice.empty()) {
    throw UserError(fmt::format("{} is a run whose {} is lost: bring it back, {}", path.string(),
                                kConfigFile, advice));
  }
  throw UserError(fmt::format(
      "{} is no run: there is no {}; name a config, a run's folder, or a checkpoint of one",
      path.string(), (run / kConfigFile).string()));
}

}  // namespace phalanx
