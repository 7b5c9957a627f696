// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/cli/terminal.h"

namespace phalanx {

/// What stands on a command line beside its commands and flags, in order.
using Arguments = std::span<const std::string>;

/// One or more arguments at a place of a command line.
struct Positional {
  /// What a Tab offers: config files, run folders, paths of fields, overrides of them,
  /// Command::words, or files and folders.
  enum class Takes { config, run, key, override, word, path };
  enum class Count { one, optional, any };

  std::string_view name;  ///< As usage shows it: "CONFIG".
  Takes takes = Takes::word;
  Count count = Count::one;
};

/// A value that a flag can have.
struct FlagValue {
  std::string_view name;          ///< "bf16"
  std::string_view meaning = {};  ///< For help, where the name does not say it.
};

/// A flag: on where it is written, else off; or one that takes a value, `--dtype=bf16` or
/// `--dtype bf16`.
struct Flag {
  /// What a value is: one of `values`, a number of things, a file to write, whose folder exists, a
  /// file or folder, or a text.
  enum class Takes { nothing, listed, count, new_file, path, text };

  std::string_view name;  ///< "--json"
  std::string_view summary;
  Takes takes = Takes::nothing;
  std::vector<FlagValue> values = {};
  std::string_view letter = {};  ///< "-j", another way to write the name.
  bool is_required = false;      ///< The command does nothing without it.

  /// "--json", "--dtype=fp32|bf16|fp16", "--last=N", "--output=FILE",
  /// "--to=PATH", "--field=TEXT"; "--format=NAME" of values with meanings, which help lists.
  std::string form() const;
};

/// A command line that was found right by its command's entry in the table.
struct Invocation {
  std::vector<std::string> arguments;
  std::vector<std::string> flags;    ///< As written, values behind a `=`, `_` of a name as `-`.
  std::vector<std::string> program;  ///< Behind `--`, where Command::takes_program.

  bool has(std::string_view flag) const;
  /// The value of a flag; of several the last one counts.
  std::optional<std::string> value(std::string_view flag) const;
  /// The same of a flag that is required.
  std::string required(std::string_view flag) const { return value(flag).value(); }
  /// The same of one that takes a count.
  std::optional<int64_t> count(std::string_view flag) const;
};

/// A command of the CLI, or an action of one: what it takes, and all that help, completion and the
/// README say of it.
struct Command {
  std::string_view name;
  std::string_view summary;                ///< A few words, for lists.
  std::string_view help;                   ///< A paragraph or more.
  std::vector<std::string_view> examples;  ///< Command lines without the program.
  std::vector<Positional> positionals;
  std::vector<Flag> flags;       ///< Beside --help.
  bool takes_program = false;    ///< `-- PROGRAM [ARGUMENT ...]` instead of the positionals.
  std::vector<Command> actions;  ///< One of them is named; without `run`, one must be.
  /// Returns the exit code. Throws UserError for a user's mistake.
  int (*run)(const Invocation& invocation) = nullptr;
  /// What help says at its end, where that has to be worked out.
  std::string (*details)(const TextStyle& style) = nullptr;
  /// The words that a positional can be, given those before it.
  std::vector<std::string> (*words)(Arguments before) = nullptr;

  /// The action of this name, or nullptr.
  const Command* find(std::string_view action) const;
};

}  // namespace phalanx
