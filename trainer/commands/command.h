#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// What follows a command's name on the command line.
using Arguments = std::span<const std::string>;

/// One command of the CLI: `trainer NAME ARGUMENTS`.
struct Command {
  std::string_view name;
  std::string_view arguments;  ///< "CONFIG [key=value ...]"
  std::string_view summary;    ///< One line for the list of commands.
  /// The exit code. Throws UserError for a user's mistake.
  int (*run)(Arguments arguments) = nullptr;
};

int run_train(Arguments arguments);
int run_evaluate(Arguments arguments);
int run_config(Arguments arguments);
int run_list(Arguments arguments);

/// All commands, in the order in which help shows them.
std::span<const Command> commands();

/// Runs `trainer [COMMAND] …` and returns the process's exit code: 0, 2 for a user's mistake,
/// 1 for a failure, 128 + signal when one stopped the run. Prints errors to stderr.
int run_command_line(int argc, char** argv);

}  // namespace phalanx
