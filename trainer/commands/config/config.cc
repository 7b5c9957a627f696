// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/load/find.h"
#include "trainer/cli/command.h"
#include "trainer/cli/terminal.h"
#include "trainer/commands/config/show_config.h"
#include "trainer/commands/config/trainer_order.h"
#include "trainer/commands/positionals.h"
#include "trainer/config/text/differences.h"
#include "trainer/config/text/json_schema.h"
#include "trainer/io/file.h"
#include "trainer/mixins/schedule_notes.h"
#include "trainer/parallel/strategy.h"
#include "trainer/run/load_config.h"
#include "trainer/run/run_folder.h"

namespace phalanx {
namespace {

config::Node resolved(Arguments arguments) {
  return resolve_config(load_config(arguments), std::nullopt);
}

// With a run's folder, or one of its checkpoints, as the run's config.
std::vector<std::string> with_config_files(Arguments arguments) {
  std::vector<std::string> files(arguments.begin(), arguments.end());
  std::error_code error;
  for (std::string& argument : files) {
    if (std::filesystem::is_directory(argument, error))
      argument = config_file_of(argument).string();
  }
  return files;
}

config::Node config_of(const std::string& path, Arguments overrides) {
  std::vector<std::string> arguments{config_file_of(path).string()};
  arguments.insert(arguments.end(), overrides.begin(), overrides.end());
  return resolved(arguments);
}

// Where a run is, of the path of its folder or of one of its checkpoints.
std::optional<int64_t> newest_step_at(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return std::nullopt;
  try {
    return parse_step_folder_name(candidates_at(path).front().filename().string());
  } catch (const UserError&) {
    return std::nullopt;  // It has none yet.
  }
}

void print_differences(Arguments arguments) {
  const Arguments overrides = arguments.subspan(std::min<size_t>(arguments.size(), 2));
  const bool has_two =
      arguments.size() >= 2 && std::ranges::all_of(overrides, [](const std::string& override) {
        return override.starts_with('~') || override.find('=') != std::string::npos;
      });
  if (!has_two) {
    throw UserError(
        "two configs, runs or checkpoints are compared, the second one with overrides: trainer "
        "config diff A B [key=value ...]");
  }
  const config::Node first = config_of(arguments[0], {});
  const config::Node second = config_of(arguments[1], overrides);
  // The lines that are no fields are comments, for what reads the others.
  fmt::print("# {} | {}{}\n", arguments[0], arguments[1],
             overrides.empty() ? "" : fmt::format(" with {}", fmt::join(overrides, " ")));
  const std::vector<config::Difference> found = config::differences(first, second);
  if (found.empty()) fmt::print("# no field differs\n");
  for (const auto& [path, a, b] : found) {
    fmt::print("{}: {} | {}\n", path, refer_to_exp_dir(a), refer_to_exp_dir(b));
  }
  // As a resume says it.
  for (const auto& note : moved_horizons(first, second, newest_step_at(arguments[0]))) {
    print_warning(note);
  }
}

void print_schema(Arguments arguments) {
  if (!arguments.empty()) throw UserError("trainer config schema takes no arguments");
  std::vector<std::pair<std::string, const config::Declaration*>> trainers;
  const auto& registry = TrainerRegistry::instance();
  for (const auto& name : ordered_trainers()) {
    trainers.emplace_back(name, &registry.at(name).declaration());
  }
  const std::vector<config::ShortKey> short_keys{{
      .name = std::string(kStrategy),
      .section = "parallel",
      .meaning = "short for fields of parallel: none, ddp, fsdp, or {name: ddp, ...}",
  }};
  fmt::print("{}", config::json_schema(trainers, short_keys));
}

int run_print(const Invocation& invocation) {
  const PrintForm form{.minimal = invocation.has("--minimal"), .json = invocation.has("--json")};
  fmt::print("{}", printed_config(load_config(with_config_files(invocation.arguments)), form));
  return 0;
}

int run_explain(const Invocation& invocation) {
  const TextStyle style = page_style(STDOUT_FILENO);
  // The path may be called as a folder here.
  std::vector<std::string> arguments =
      with_config_files(Arguments(invocation.arguments).subspan(1));
  arguments.insert(arguments.begin(), invocation.arguments.front());
  fmt::print("{}", explained_path(arguments, {.width = style.width,
                                              .colour = style.colour,
                                              .explain_key = &word_of_others}));
  return 0;
}

int run_diff(const Invocation& invocation) {
  print_differences(invocation.arguments);
  return 0;
}

int run_new(const Invocation& invocation) {
  const std::string starter = starter_config(invocation.arguments);
  if (const auto file = invocation.value("--output")) {
    replace_file(*file, starter);
  } else {
    fmt::print("{}", starter);
  }
  return 0;
}

int run_schema(const Invocation& invocation) {
  print_schema(invocation.arguments);
  return 0;
}

int run_reference(const Invocation&) {
  fmt::print("{}", config_reference());
  return 0;
}

}  // namespace

Command config_command() {
  return {
      .name = "config",
      .summary = "look at configs",
      .help = "Nothing is trained or written.",
      .actions =
          {
              {
                  .name = "print",
                  .summary = "the whole config, and where each value comes from",
                  .help = "Prints what files and overrides resolve to, with every default, as a "
                          "config that makes the same run. A run's folder stands for its "
                          "config.yaml.",
                  .examples = {"config print my.yaml",
                               "config print base.yaml large.yaml "
                               "model.n_layer=8",
                               "config print runs/my/run_0 --minimal"},
                  .positionals = {kConfig, kConfigs, kOverrides},
                  .flags = {{"--minimal", "only what differs from the defaults"},
                            {"--json", "one line of JSON"}},
                  .run = run_print,
              },
              {
                  .name = "explain",
                  .summary = "a field's, or a section's, type, range, default and meaning",
                  .help =
                      "Shows type, range, default and meaning of the fields at and below a dotted "
                      "path, in every class that has them. With a config: in the classes that it "
                      "names, with their values, and where they are written; a run's folder "
                      "stands for its config.yaml. The config need not "
                      "be whole: `explain task my.yaml` shows what the named task takes.",
                  .examples = {"config explain optimizer.lr", "config explain task my.yaml"},
                  .positionals = {{"PATH", Positional::Takes::key}, kConfigs, kOverrides},
                  .run = run_explain,
              },
              {
                  .name = "diff",
                  .summary = "what differs between two configs or runs",
                  .help =
                      "Compares what two files, or the configs of two runs' folders, resolve "
                      "to: behind the names of both, a line for each field that differs, its value "
                      "in A | that in B, by element in lists of sections. key=value are of B: with "
                      "A and B the same run, what they would change. Warns where another length of "
                      "B moves the learning rate of the "
                      "steps to come.",
                  .examples = {"config diff my.yaml runs/my/run_0",
                               "config diff runs/my/run_0 runs/my/run_0 training.max_steps=4000"},
                  .positionals = {{"A", Positional::Takes::config},
                                  {"B", Positional::Takes::config},
                                  kOverrides},
                  .run = run_diff,
              },
              {
                  .name = "new",
                  .summary = "a commented config to begin with",
                  .help =
                      "Prints a config for the trainer, task, model, optimizer and schedule that "
                      "the overrides name, with every other field as a comment. If a kind has only "
                      "one class, that one is taken.",
                  .examples = {"config new task=language_modeling model=gpt2 optimizer=adamw "
                               "--output my.yaml"},
                  .positionals = {kOverrides},
                  .flags = {{.name = "--output",
                             .summary = "write it to a new file",
                             .takes = Flag::Takes::new_file}},
                  .run = run_new,
              },
              {
                  .name = "schema",
                  .summary = "JSON Schema, by which editors complete and check configs",
                  .help = "With the schema in a file, and `# yaml-language-server: $schema=FILE` "
                          "as a config's first line, VS Code's YAML extension completes and checks "
                          "the config.",
                  .examples = {"config schema > phalanx.schema.json"},
                  .run = run_schema,
              },
              {
                  .name = "reference",
                  .summary = "every field as a page of Markdown",
                  .help = "Prints what docs/config.md holds.",
                  .examples = {"config reference > docs/config.md"},
                  .run = run_reference,
              },
          },
  };
}

}  // namespace phalanx
