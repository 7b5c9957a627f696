// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/cli/command.h"
#include "trainer/commands/positionals.h"
#include "trainer/ranks/environment/launch_lines.h"
#include "trainer/run/load_config.h"
#include "trainer/submission/shell_words.h"
#include "trainer/submission/slurm_array.h"
#include "trainer/submission/slurm_script.h"
#include "trainer/submission/slurm_time.h"
#include "trainer/submission/submit.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDefaultSaveBefore = 120;

// Options of sbatch that go into the script as they are.
constexpr std::array<std::string_view, 7> kPassedOn = {
    "--time", "--partition", "--account", "--qos", "--mem", "--gpus-per-node", "--constraint"};

// What the script says itself, by other flags or for a run to go on.
constexpr std::array<std::string_view, 9> kOwn = {
    "--array",           "--cpus-per-task", "--job-name", "--nodes", "--ntasks",
    "--ntasks-per-node", "--open-mode",     "--output",   "--signal"};

// #SBATCH lines have a syntax of their own.
std::string option_value(const std::string& flag, const std::string& value) {
  constexpr std::string_view kSpecial = "'\"\\/%";
  const auto is_plain = [&](unsigned char c) {
    return std::isgraph(c) != 0 && kSpecial.find(static_cast<char>(c)) == std::string_view::npos;
  };
  if (!value.empty() && std::ranges::all_of(value, is_plain)) return value;
  throw UserError(fmt::format(
      "{}='{}': a value for Slurm is not empty, and holds no spaces, quotes, slashes or %", flag,
      value));
}

// Those of --sbatch, in a shell's words.
std::vector<std::string> further_options(const Invocation& invocation) {
  std::vector<std::string> options;
  for (const std::string& word : shell_words(invocation.value("--sbatch").value_or(""))) {
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || name.size() == 2) {
      throw UserError(
          fmt::format("--sbatch: '{}' is no long option of sbatch: write --exclude=node3", word));
    }
    if (std::ranges::find(kPassedOn, name) != kPassedOn.end()) {
      throw UserError(
          fmt::format("--sbatch: '{}': write it as an option of trainer launch slurm, outside "
                      "--sbatch: what else the script says depends on it",
                      word));
    }
    if (std::ranges::find(kOwn, name) != kOwn.end()) {
      throw UserError(fmt::format(
          "--sbatch: the script has a {} of its own: see trainer launch slurm --help", name));
    }
    if (word.find_first_of(" \t\n'\"\\") != std::string::npos) {
      throw UserError(fmt::format("--sbatch: '{}': write it without blanks and quotes", word));
    }
    options.push_back(word);
  }
  return options;
}

// How messages of the run submit it again: the config comes behind. A task of an array is one run.
std::vector<std::string> line_of(const Invocation& invocation, const std::string& program) {
  std::vector<std::string> words{program, "launch", "slurm"};
  for (const std::string& flag : invocation.flags) {
    const std::string_view name = std::string_view(flag).substr(0, flag.find('='));
    if (name != "--array" && name != "--array-limit" && name != "--dry-run") words.push_back(flag);
  }
  return words;
}

// It also names the log: `fallback`, unless one is given.
std::string job_name(const Invocation& invocation, const std::string& fallback) {
  if (const auto given = invocation.value("--job-name")) return option_value("--job-name", *given);
  std::string name = fallback.substr(0, 60);
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '.'; }, '_');
  return name;
}

int64_t count_or(const Invocation& invocation, std::string_view flag, int64_t otherwise) {
  return invocation.count(flag).value_or(otherwise);
}

// A rank a GPU, where their number is plain: "4", "a100:4".
int64_t tasks_per_node(const Invocation& invocation) {
  if (const auto given = invocation.count("--ntasks-per-node")) return *given;
  const auto gpus = invocation.value("--gpus-per-node");
  if (!gpus) return 1;
  const std::string number = gpus->substr(gpus->find(':') + 1);
  if (!number.empty() && number.size() < 4 && std::ranges::all_of(number, ::isdigit)) {
    return std::max<int64_t>(std::stoll(number), 1);
  }
  throw UserError("option --ntasks-per-node is missing: --gpus-per-node is no plain number");
}

// Seconds; 0: never.
int64_t save_before(const Invocation& invocation) {
  if (invocation.has("--no-requeue")) return 0;
  const int64_t seconds = count_or(invocation, "--save-before", kDefaultSaveBefore);
  const std::string limit = invocation.value("--time").value_or("");
  const auto longest = seconds_of_limit(limit);
  if (!longest || seconds < *longest) return seconds;
  throw UserError(fmt::format(
      "--save-before={}: --time={} is {} seconds, so that the run would save and end as soon as it "
      "has begun, again and again; give it more time, save later, or leave it to --no-requeue",
      seconds, limit, *longest));
}

// All that the command line says, except the name.
SlurmJob job_of(const Invocation& invocation) {
  SlurmJob job{.name = {},
               .nodes = count_or(invocation, "--nodes", 1),
               .tasks_per_node = tasks_per_node(invocation),
               .save_before = save_before(invocation),
               .cores = invocation.count("--cpus-per-task"),
               .takes_gpus = invocation.value("--gpus-per-node").has_value(),
               .keeps_rank_logs = invocation.has("--rank-logs"),
               .setup = invocation.value("--setup"),
               .container = invocation.value("--container"),
               .array_limit = invocation.count("--array-limit")};
  if (job.setup && !fs::is_regular_file(*job.setup)) {
    throw UserError(fmt::format("--setup: there is no file '{}'", *job.setup));
  }
  for (const std::string_view flag : kPassedOn) {
    if (const auto value = invocation.value(flag)) {
      job.options.push_back(fmt::format("{}={}", flag, option_value(std::string(flag), *value)));
    }
  }
  for (std::string& option : further_options(invocation)) job.options.push_back(std::move(option));
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  job.variables = {fmt::format("{}={}", kLaunchLinesVariable,
                               to_text({{.place = "", .words = line_of(invocation, program)}}))};
  job.command = {program, "train"};
  job.command.insert(job.command.end(), invocation.arguments.begin(), invocation.arguments.end());
  return job;
}

SlurmJob job_of_one_run(const Invocation& invocation) {
  if (invocation.value("--array-limit")) {
    throw UserError("--array-limit is for an array: --array names a file with a run a line");
  }
  const UserConfig user = load_config(invocation.arguments);
  checked_config(user);
  SlurmJob job = job_of(invocation);
  job.name = job_name(invocation, experiment_name(user));
  return job;
}

SlurmJob job_of_array(const Invocation& invocation, const std::string& file) {
  SlurmJob job = job_of(invocation);
  job.name = job_name(invocation, fs::path(file).stem().string());
  job.array = read_array(file, invocation.arguments);
  return job;
}

int run(const Invocation& invocation) {
  const auto file = invocation.value("--array");
  const std::string script =
      slurm_script(file ? job_of_array(invocation, *file) : job_of_one_run(invocation));
  if (!invocation.has("--dry-run")) submit({"sbatch"}, script);
  fmt::print("{}", script);
  return 0;
}

}  // namespace

Command launch_slurm_command() {
  using Takes = Flag::Takes;
  return {
      .name = "slurm",
      .summary = "submit a run to Slurm",
      .help =
          "Checks the config, writes a job's script, and hands it to sbatch: a task a rank. Two "
          "minutes before the time limit (--save-before) the run saves and ends, and the job is "
          "put "
          "into the queue again; it goes on in its own folder. --array submits several runs as one "
          "job array: each line of its file holds what one run adds to the command line, configs "
          "and overrides, in a shell's words. --dry-run prints the script, for changes by hand.",
      .examples = {"launch slurm my.yaml --nodes=2 --gpus-per-node=4 --time=12:00:00",
                   "launch slurm my.yaml optimizer.lr=1e-3 --ntasks-per-node=8 --dry-run",
                   "launch slurm my.yaml --array=runs.txt --array-limit=4 --gpus-per-node=1"},
      .positionals = {kConfigs, kOverrides},
      .flags = {{.name = "--nodes", .summary = "hosts; default: 1", .takes = Takes::count},
                {.name = "--ntasks-per-node",
                 .summary = "ranks of a host; default: one a GPU, else 1",
                 .takes = Takes::count},
                {.name = "--gpus-per-node", .summary = "4, or a100:4", .takes = Takes::text},
                {.name = "--cpus-per-task", .summary = "cores of a rank", .takes = Takes::count},
                {.name = "--mem", .summary = "memory of a host: 64G", .takes = Takes::text},
                {.name = "--time", .summary = "the limit: 12:00:00", .takes = Takes::text},
                {.name = "--partition", .summary = "as sbatch takes it", .takes = Takes::text},
                {.name = "--account", .summary = "as sbatch takes it", .takes = Takes::text},
                {.name = "--qos", .summary = "as sbatch takes it", .takes = Takes::text},
                {.name = "--constraint", .summary = "as sbatch takes it", .takes = Takes::text},
                {.name = "--job-name", .summary = "default: the run's name", .takes = Takes::text},
                {.name = "--sbatch",
                 .summary = "further options of sbatch: \"--exclude=node3 --mail-type=END\"",
                 .takes = Takes::text},
                {.name = "--save-before",
                 .summary = "seconds before the limit at which the run saves and is put into the "
                            "queue again; default: 120",
                 .takes = Takes::count},
                {.name = "--no-requeue", .summary = "end at the limit instead"},
                {.name = "--array",
                 .summary = "a file with a run a line: they become the tasks of a job array",
                 .takes = Takes::path},
                {.name = "--array-limit",
                 .summary = "runs of the array at a time; default: Slurm's limits",
                 .takes = Takes::count},
                {.name = "--rank-logs", .summary = "a log for the output of each rank"},
                {.name = "--setup",
                 .summary = "a file with what the job's shell does first: module load ...",
                 .takes = Takes::path},
                {.name = "--container",
                 .summary = "an image, in which Apptainer runs the trainer",
                 .takes = Takes::path},
                {.name = "--dry-run", .summary = "print the script and submit nothing"}},
      .run = run,
  };
}

}  // namespace phalanx
