// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/cli/command.h"
#include "trainer/commands/new/skeleton.h"
#include "trainer/config/tree/declaration.h"
#include "trainer/io/file.h"
#include "trainer/registry/kinds.h"
#include "trainer/registry/trainers.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileOfSource = "trainer/api/task.h";

void check_kind(const std::string& kind) {
  const std::vector<std::string> kinds = skeleton_kinds();
  if (std::ranges::find(kinds, kind) != kinds.end()) return;
  throw UserError(fmt::format("KIND is {}, not '{}'", fmt::join(kinds, ", "), kind));
}

bool is_name(std::string_view text) {
  const auto may_follow = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z' &&
         std::ranges::all_of(text, may_follow);
}

// The kind of templates: a task has several.
std::string template_of(const std::string& kind, const Invocation& invocation) {
  const auto of_task = invocation.value("--kind");
  if (!of_task) return kind;
  if (kind != "task") throw UserError("--kind is of a task");
  return *of_task == "language" ? "task" : *of_task;
}

bool has_own_step(const std::string& kind, const Invocation& invocation) {
  if (!invocation.has("--own-step")) return false;
  if (kind != "task") throw UserError("--own-step is for a task only");
  return true;
}

// A mixin comes with a composition of its name.
const NameTable& table_of(std::string_view kind) {
  if (kind == "task") return Registry<AnyTask>::instance().table();
  if (kind == "model") return Registry<ModelBase>::instance().table();
  if (kind == "optimizer") return Registry<Optimizer>::instance().table();
  if (kind == "lr_scheduler") return Registry<LrScheduler>::instance().table();
  if (kind == "sink") return Registry<Sink>::instance().table();
  return TrainerRegistry::instance().table();
}

// A mixin's section stands beside those that every composition has, or may have.
bool is_section(std::string_view name) {
  const TrainerRegistry& trainers = TrainerRegistry::instance();
  const std::vector<std::string> names = trainers.table().names();
  return std::ranges::any_of(names, [&](const std::string& trainer) {
    return trainers.at(trainer).declaration().find(name) != nullptr;
  });
}

void check_name(const std::string& kind, const std::string& name) {
  if (!is_name(name)) {
    throw UserError(fmt::format(
        "'{}' cannot be a name: it takes small letters, digits and _, a letter first", name));
  }
  if (name == "trainer") throw UserError("'trainer' is the name of the program: take another one");
  const NameTable& table = table_of(kind);
  if (table.contains(name)) {
    throw UserError(
        fmt::format("there is a {} '{}' already: take another name", table.kind(), name));
  }
  if (kind == "mixin" && is_section(name)) {
    throw UserError(fmt::format("a config has the key '{}' already: take another name", name));
  }
}

void check_free(const std::vector<SkeletonFile>& files) {
  for (const SkeletonFile& file : files) {
    if (!fs::exists(fs::symlink_status(file.path))) continue;
    throw UserError(fmt::format("'{}' exists: nothing was written", file.path));
  }
}

bool is_source(const fs::path& folder) {
  std::error_code unknown;
  return fs::exists(folder / kFileOfSource, unknown);
}

// The folder of the source above a path; nothing if none is one. A build's folder leads to it by
// links.
std::optional<fs::path> source_above(const fs::path& path) {
  for (fs::path folder = path; folder != folder.root_path(); folder = folder.parent_path()) {
    if (!is_source(folder)) continue;
    const fs::path file = fs::canonical(folder / kFileOfSource);
    return file.parent_path().parent_path().parent_path();
  }
  return std::nullopt;
}

// Where the source of Phalanx is: as a flag or `bazel run` says, or where this program was built.
fs::path phalanx_folder(const Invocation& invocation) {
  if (const auto given = invocation.value("--phalanx")) {
    if (is_source(*given)) return fs::canonical(*given);
    throw UserError(fmt::format("--phalanx: '{}' does not hold the source of Phalanx", *given));
  }
  const char* const run_from = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (run_from != nullptr && is_source(run_from)) return run_from;
  std::error_code unknown;
  for (const fs::path& place : {fs::current_path(), fs::read_symlink("/proc/self/exe", unknown)}) {
    if (const auto found = source_above(place)) return *found;
  }
  throw UserError(
      "option --phalanx is missing: --phalanx=FOLDER, with the source of Phalanx, whose bazelw "
      "builds this folder; no such folder is above this one or above the program");
}

void write(const SkeletonFile& file) {
  File(file.path, O_WRONLY | O_CREAT | O_EXCL).write(file.text);
  fmt::print("wrote {}\n", file.path);
}

int run(const Invocation& invocation) {
  const std::string& kind = invocation.arguments[0];
  const std::string& name = invocation.arguments[1];
  check_kind(kind);
  check_name(kind, name);
  if (is_source(".")) {
    throw UserError("this is the source of Phalanx: go to a folder of your own");
  }
  const std::string of = template_of(kind, invocation);
  const std::vector<SkeletonFile> files = skeleton_files(of, name, has_own_step(kind, invocation));
  check_free(files);
  const std::string source = phalanx_folder(invocation).string();
  const std::string targets = skeleton_targets(of, name);
  const bool has_targets = fs::exists("BUILD") || fs::exists("BUILD.bazel");
  for (const SkeletonFile& file : workspace_files(name, targets)) {
    const bool is_there = file.path == "BUILD" ? has_targets : fs::exists(file.path);
    if (!is_there) write(file);
  }
  for (const SkeletonFile& file : files) write(file);
  if (has_targets) {
    fmt::print("\nadd to BUILD, and \":{}\" to the deps of its trainer_binary:\n\n{}", name,
               targets);
  }
  fmt::print(
      "\nbuild, test and train:\n  {0}/bazelw test //:{1}_test\n  {0}/bazelw build //:trainer\n  "
      "bazel-bin/trainer {1}.yaml\n",
      source, name);
  return 0;
}

std::vector<std::string> words(Arguments before) {
  return before.empty() ? skeleton_kinds() : std::vector<std::string>();
}

}  // namespace

Command new_command() {
  return {
      .name = "new",
      .summary = "the first files of a task, model, optimizer, … of your own",
      .help =
          "Writes a small class that works, its test and a config that trains it into this "
          "folder: NAME.h, NAME.cc, NAME_test.cc, NAME.yaml, and WORKSPACE and BUILD if it has "
          "none. KIND is task, model, optimizer, lr_scheduler, sink or mixin. Nothing that exists "
          "is changed; lines for a BUILD file that exists are printed.",
      .examples = {"new task count_words", "new task prices --kind=regression",
                   "new task distillation --own-step", "new mixin slow_steps --phalanx=../phalanx"},
      .positionals = {{"KIND"}, {"NAME"}},
      .flags = {{"--kind",
                 "of a task; language without it",
                 Flag::Takes::listed,
                 {{"language", "predicts the next token"},
                  {"classification", "predicts the class of a row of a CSV file, with a model"},
                  {"regression", "predicts a number of a row of a CSV file, with a model"}}},
                {"--own-step", "for a task: write its training step out, to change it"},
                {"--phalanx",
                 "the folder with the source of Phalanx; without it, that above this folder or of "
                 "the clone that this program was built in",
                 Flag::Takes::path}},
      .run = run,
      .words = words,
  };
}

}  // namespace phalanx
