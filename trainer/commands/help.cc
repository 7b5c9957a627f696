// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/help.h"

#include <fmt/format.h>
#include <unistd.h>

#include "trainer/cli/command_help.h"
#include "trainer/commands/command_table.h"

namespace phalanx {
namespace {

// A command, then an action.
std::vector<std::string> words(Arguments before) {
  return names_of_actions(*find_command(program(), before).command);
}

int run(const Invocation& invocation) {
  print_help(find_command(program(), invocation.arguments));
  return 0;
}

}  // namespace

void print_help(const NamedCommand& command) {
  fmt::print("{}", command_help(command, page_style(STDOUT_FILENO)));
}

Command help_command() {
  return {
      .name = "help",
      .summary = "the same as COMMAND --help",
      .help = "Explains the program, a command or an action.",
      .examples = {"help config", "help config print"},
      .positionals = {{"COMMAND", Positional::Takes::word, Positional::Count::any}},
      .run = run,
      .words = words,
  };
}

}  // namespace phalanx
