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
#include "trainer/io/file.h"
#include "trainer/registry/kinds.h"
#include "trainer/registry/trainers.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

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

// A mixin comes with a composition of its name.
const NameTable& table_of(std::string_view kind) {
  if (kind == "task") return Registry<AnyTask>::instance().table();
  if (kind == "model") return Registry<ModelBase>::instance().table();
  return TrainerRegistry::instance().table();
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
}

void check_free(const std::vector<SkeletonFile>& files) {
  for (const SkeletonFile& file : files) {
    if (!fs::exists(fs::symlink_status(file.path))) continue;
    throw UserError(fmt::format("'{}' exists: nothing was written", file.path));
  }
}

// Where the source of Phalanx is; nothing if nobody says it. `bazel run` does.
std::optional<fs::path> phalanx_folder(const Invocation& invocation) {
  if (const auto given = invocation.value("--phalanx")) {
    if (fs::exists(fs::path(*given) / "trainer/api/task.h")) return fs::canonical(*given);
    throw UserError(fmt::format("--phalanx: '{}' does not hold the source of Phalanx", *given));
  }
  const char* const run_from = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (run_from != nullptr && fs::exists(fs::path(run_from) / "trainer/api/task.h")) {
    return fs::path(run_from);
  }
  return std::nullopt;
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
  if (fs::exists("trainer/api/task.h")) {
    throw UserError("this is the source of Phalanx: go to a folder of your own");
  }
  const std::vector<SkeletonFile> files = skeleton_files(kind, name);
  check_free(files);
  const auto phalanx = phalanx_folder(invocation);
  if (!phalanx && !fs::exists("WORKSPACE")) {
    throw UserError("option --phalanx is missing: --phalanx=FOLDER, with the source of Phalanx");
  }
  const std::string source = phalanx.value_or("PHALANX").string();
  const std::string targets = skeleton_targets(kind, name);
  const bool has_targets = fs::exists("BUILD") || fs::exists("BUILD.bazel");
  for (const SkeletonFile& file : workspace_files(name, targets, source)) {
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
      .summary = "the first files of a task, model or mixin of your own",
      .help =
          "Writes a small class that works, its test and a config that trains it into this "
          "folder, and a Bazel workspace around them if there is none: NAME.h, NAME.cc, "
          "NAME_test.cc, NAME.yaml; WORKSPACE, .bazelrc, BUILD. KIND is task, model or mixin. "
          "Nothing that exists is changed; lines for a BUILD file that exists are printed.",
      .examples = {"new task count_words --phalanx=~/phalanx", "new mixin slow_steps"},
      .positionals = {{"KIND"}, {"NAME"}},
      .flags = {{"--phalanx", "the folder with the source of Phalanx, for a new WORKSPACE",
                 Flag::Takes::path}},
      .run = run,
      .words = words,
  };
}

}  // namespace phalanx
