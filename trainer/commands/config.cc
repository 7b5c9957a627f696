// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/cli/terminal.h"
#include "trainer/commands/command_table.h"
#include "trainer/commands/show_config.h"
#include "trainer/config/text/differences.h"
#include "trainer/config/text/json_schema.h"
#include "trainer/run/load_config.h"
#include "trainer/run/run_folder.h"

namespace phalanx {
namespace {

config::Node resolved(Arguments arguments) {
  return resolve_config(load_config(arguments), std::nullopt);
}

config::Node config_of(const std::string& path) {
  const std::string file = config_file_of(path).string();
  return resolved(std::span(&file, 1));
}

void print_differences(Arguments arguments) {
  if (arguments.size() != 2) {
    throw UserError("two configs, runs or checkpoints are compared: trainer config diff A B");
  }
  const auto differences = config::differences(config_of(arguments[0]), config_of(arguments[1]));
  for (const auto& [path, a, b] : differences) {
    fmt::print("{}: {} | {}\n", path, refer_to_exp_dir(a), refer_to_exp_dir(b));
  }
}

void print_schema(Arguments arguments) {
  if (!arguments.empty()) throw UserError("trainer config schema takes no arguments");
  std::vector<std::pair<std::string, const config::Declaration*>> trainers;
  const auto& registry = TrainerRegistry::instance();
  for (const auto& name : registry.table().names()) {
    trainers.emplace_back(name, &registry.at(name).declaration());
  }
  fmt::print("{}", config::json_schema(trainers));
}

}  // namespace

int run_config_print(const Invocation& invocation) {
  const PrintForm form{.minimal = invocation.has("--minimal"), .json = invocation.has("--json")};
  fmt::print("{}", printed_config(invocation.arguments, form));
  return 0;
}

int run_config_explain(const Invocation& invocation) {
  const TextStyle style = page_style(STDOUT_FILENO);
  fmt::print("{}",
             explained_path(invocation.arguments, {.width = style.width, .colour = style.colour}));
  return 0;
}

int run_config_diff(const Invocation& invocation) {
  print_differences(invocation.arguments);
  return 0;
}

int run_config_new(const Invocation& invocation) {
  fmt::print("{}", starter_config(invocation.arguments));
  return 0;
}

int run_config_schema(const Invocation& invocation) {
  print_schema(invocation.arguments);
  return 0;
}

int run_config_reference(const Invocation&) {
  fmt::print("{}", config_reference());
  return 0;
}

}  // namespace phalanx
