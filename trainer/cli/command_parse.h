// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/cli/command.h"

namespace phalanx {

/// A command and how it is called: "trainer config print".
struct NamedCommand {
  const Command* command = nullptr;
  std::string name;

  /// "trainer config print CONFIG [CONFIG ...] [key=value ...] [--minimal]"; many flags are one
  /// "[FLAG ...]".
  std::string usage() const;

  /// Whether it is the program itself, whose actions are the commands.
  bool is_program() const;
};

std::vector<std::string> names_of_actions(const Command& command);

/// Its commands, and the actions of those that have some, in the order of the table.
std::vector<NamedCommand> all_commands(const NamedCommand& program);

/// What a command line asks for.
struct CommandLine {
  NamedCommand command;
  bool asks_for_help = false;  ///< Then the invocation is not checked.
  Invocation invocation;
};

/// A flag that a command lacks. Perhaps a field of a config is meant, which only commands know.
class UnknownOption : public UserError {
 public:
  UnknownOption(const std::string& message, NamedCommand command, std::string written)
      : UserError(message), command_(std::move(command)), written_(std::move(written)) {}

  const NamedCommand& command() const { return command_; }
  /// "--max-steps=3"; `_` of a name as `-`.
  const std::string& written() const { return written_; }

 private:
  NamedCommand command_;
  std::string written_;
};

inline constexpr std::string_view kHelpFlag = "--help";  ///< Every command's; also -h.

/// Finds the command that `arguments` name, or the program's first where they name none, and
/// checks the rest against its entry. Flags may stand anywhere; behind `--` there are none. Throws
/// UserError for commands and actions that there are not, with the nearest ones that there are, and
/// for too few or too many arguments; UnknownOption.
CommandLine parse_command_line(const NamedCommand& program, Arguments arguments);

/// The command that words name: ["config", "print"]. Throws UserError for one that there is not.
NamedCommand find_command(const NamedCommand& program, Arguments words);

}  // namespace phalanx
