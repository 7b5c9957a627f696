// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/command_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "trainer/base/nearest.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/scalar.h"

namespace phalanx {
namespace {

using Count = Positional::Count;

// Those of a command with more are in its help.
constexpr std::size_t kMostFlagsOfUsage = 8;

bool is_flag(const std::string& argument) {
  return argument.size() > 1 && argument.starts_with('-');
}

NamedCommand action_of(const NamedCommand& parent, const Command& action) {
  return {.command = &action, .name = fmt::format("{} {}", parent.name, action.name)};
}

// A bare word that names no file: sooner a misspelt command than a config.
bool looks_like_a_command(const std::string& word) {
  return word.find_first_of("./-") == std::string::npos && !std::filesystem::exists(word);
}

const Flag* find_flag(const Command& command, std::string_view name) {
  const auto found = std::find_if(command.flags.begin(), command.flags.end(),
                                  [&](const Flag& flag) { return flag.name == name; });
  return found == command.flags.end() ? nullptr : &*found;
}

// "--rdzv-id=a_b" of "--rdzv_id=a_b": torchrun's users write either.
std::string with_dashes(std::string flag) {
  const auto name_end = std::find(flag.begin(), flag.end(), '=');
  std::replace(flag.begin(), name_end, '_', '-');
  return flag;
}

// "--redirects=3" of "-r3" and "-r=3", "--redirects" of "-r".
std::string with_whole_name(const Command& command, std::string flag) {
  constexpr std::size_t kLetter = 2;
  const auto found = std::ranges::find_if(command.flags, [&](const Flag& known) {
    return !known.letter.empty() && flag.starts_with(known.letter);
  });
  if (found == command.flags.end()) return flag;
  const std::string value =
      flag.substr(flag.starts_with(std::string(found->letter) + "=") ? kLetter + 1 : kLetter);
  return std::string(found->name) + (flag.size() == kLetter ? "" : "=" + value);
}

// A flag that is written without the `=` that its value would stand behind.
bool wants_value(const Command& command, const std::string& argument) {
  const Flag* flag = find_flag(command, argument);
  return flag != nullptr && flag->takes != Flag::Takes::nothing;
}

// Commands, then arguments, with flags among them.
CommandLine split(const NamedCommand& program, Arguments arguments) {
  CommandLine line{.command = program, .invocation = {}};
  auto& [positionals, flags, behind_dashes] = line.invocation;
  bool only_positionals = false;
  bool is_value = false;  // of the flag before
  for (const std::string& argument : arguments) {
    if (only_positionals) {
      (line.command.command->takes_program ? behind_dashes : positionals).push_back(argument);
      continue;
    }
    if (is_value) {
      flags.back() += "=" + argument;
      is_value = false;
    } else if (argument == "--") {
      only_positionals = true;
    } else if (argument == kHelpFlag || argument == "-h") {
      line.asks_for_help = true;
    } else if (is_flag(argument)) {
      flags.push_back(with_whole_name(*line.command.command, with_dashes(argument)));
      is_value = wants_value(*line.command.command, flags.back());
    } else if (const Command* action = line.command.command->find(argument);
               action != nullptr && positionals.empty()) {
      line.command = action_of(line.command, *action);
    } else {
      positionals.push_back(argument);
    }
  }
  return line;
}

[[noreturn]] void refuse_action(const NamedCommand& parent, const std::string& word) {
  const bool is_program = parent.name.find(' ') == std::string::npos;
  throw UserError(
      unknown_name(is_program ? "command" : "action", word, names_of_actions(*parent.command)) +
      "; `" + parent.name + " --help` lists them");
}

std::vector<std::string> names_of_values(const Flag& flag) {
  std::vector<std::string> names;
  for (const FlagValue& value : flag.values) names.emplace_back(value.name);
  return names;
}

void check_listed(const Flag& flag, const std::string& value) {
  const std::vector<std::string> known = names_of_values(flag);
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  throw UserError(unknown_name(fmt::format("value of {}", flag.name), value, known));
}

void check_count_value(const Flag& flag, const std::string& value) {
  const auto parsed = config::parse_integer(value).value;
  if (parsed && *parsed >= 1) return;
  throw UserError(fmt::format("option {} takes a whole number from 1 on: '{}'", flag.name, value));
}

void check_new_file(const Flag& flag, const std::string& value) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path path = value;
  if (value.empty() || fs::is_directory(path, error)) {
    throw UserError(fmt::format("option {} takes the name of a file: '{}'", flag.name, value));
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error)) {
    throw UserError(
        fmt::format("option {}: the folder '{}' does not exist", flag.name, folder.string()));
  }
  if (fs::exists(path, error)) {
    throw UserError(
        fmt::format("option {}: '{}' exists; remove it, or name another file", flag.name, value));
  }
}

// "--format=hf|onnx": also of values that usage does not list.
std::string form_with_values(const Flag& flag) {
  if (flag.takes != Flag::Takes::listed) return flag.form();
  return fmt::format("{}={}", flag.name, fmt::join(names_of_values(flag), "|"));
}

bool has_meanings(const Flag& flag) {
  return std::any_of(flag.values.begin(), flag.values.end(),
                     [](const FlagValue& value) { return !value.meaning.empty(); });
}

// Checks the value of a known flag, "--name" or "--name=value".
void check_value(const Flag& flag, const std::string& written) {
  const bool has_value = written.size() > flag.name.size();
  if (flag.takes == Flag::Takes::nothing) {
    if (!has_value) return;
    throw UserError(fmt::format("option {} takes no value: '{}'", flag.name, written));
  }
  if (!has_value) {
    throw UserError(
        fmt::format("option {} lacks its value: {}", flag.name, form_with_values(flag)));
  }
  const std::string value = written.substr(flag.name.size() + 1);
  if (flag.takes == Flag::Takes::listed) check_listed(flag, value);
  if (flag.takes == Flag::Takes::count) check_count_value(flag, value);
  if (flag.takes == Flag::Takes::new_file) check_new_file(flag, value);
  // A text may be empty, as a prompt.
  if (flag.takes == Flag::Takes::path && value.empty()) {
    throw UserError(fmt::format("option {} is empty", flag.name));
  }
}

void check_flags(const NamedCommand& command, const Invocation& invocation) {
  std::vector<std::string> names{std::string(kHelpFlag)};
  for (const Flag& flag : command.command->flags) names.emplace_back(flag.name);
  const Flag help{.name = kHelpFlag, .summary = {}};
  for (const std::string& written : invocation.flags) {
    const std::string name = written.substr(0, written.find('='));
    if (name == kHelpFlag) {
      check_value(help, written);
    } else if (const Flag* flag = find_flag(*command.command, name)) {
      check_value(*flag, written);
    } else {
      throw UnknownOption(unknown_name("option", name, names), command, written);
    }
  }
}

void check_count(const NamedCommand& command, const Invocation& invocation) {
  const auto& positionals = command.command->positionals;
  const auto& arguments = invocation.arguments;
  const auto has = [](Count count) {
    return [count](const Positional& positional) { return positional.count == count; };
  };
  if (!invocation.program.empty()) {
    if (arguments.empty()) return;
    throw UserError(fmt::format("'{}' stands before `--`, which a program follows: {}",
                                arguments.front(), command.usage()));
  }
  const auto needed = std::count_if(positionals.begin(), positionals.end(), has(Count::one));
  if (std::ssize(arguments) < needed) {
    throw UserError(
        fmt::format("{} is missing: {}", positionals[arguments.size()].name, command.usage()));
  }
  if (std::any_of(positionals.begin(), positionals.end(), has(Count::any))) return;
  if (arguments.size() > positionals.size()) {
    throw UserError(fmt::format("'{}' is one argument too many: {}", arguments[positionals.size()],
                                command.usage()));
  }
}

void check_required(const NamedCommand& command, const Invocation& invocation) {
  for (const Flag& flag : command.command->flags) {
    if (!flag.is_required || invocation.value(flag.name)) continue;
    throw UserError(
        fmt::format("option {} is missing: {}, {}", flag.name, flag.form(), flag.summary));
  }
}

}  // namespace

bool Invocation::has(std::string_view flag) const {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

std::optional<std::string> Invocation::value(std::string_view flag) const {
  const auto is_it = [&](const std::string& written) {
    return written.size() > flag.size() && written.starts_with(flag) && written[flag.size()] == '=';
  };
  const auto found = std::find_if(flags.rbegin(), flags.rend(), is_it);
  if (found == flags.rend()) return std::nullopt;
  return found->substr(flag.size() + 1);
}

std::optional<int64_t> Invocation::count(std::string_view flag) const {
  const auto written = value(flag);
  return written ? config::parse_integer(*written).value : std::nullopt;
}

std::string Flag::form() const {
  switch (takes) {
    case Takes::nothing:
      return std::string(name);
    case Takes::listed:
      return has_meanings(*this) ? fmt::format("{}=NAME", name) : form_with_values(*this);
    case Takes::count:
      return fmt::format("{}=N", name);
    case Takes::new_file:
      return fmt::format("{}=FILE", name);
    case Takes::path:
      return fmt::format("{}=PATH", name);
    case Takes::text:
      return fmt::format("{}=TEXT", name);
  }
  return {};
}

const Command* Command::find(std::string_view action) const {
  const auto found = std::find_if(actions.begin(), actions.end(),
                                  [&](const Command& each) { return each.name == action; });
  return found == actions.end() ? nullptr : &*found;
}

std::string NamedCommand::usage() const {
  std::string text = name;
  if (!command->actions.empty() && command->run == nullptr) {
    text += fmt::format(" {}", fmt::join(names_of_actions(*command), "|"));
  }
  for (const auto& [what, takes, count] : command->positionals) {
    const std::string_view form = count == Count::one   ? " {}"
                                  : count == Count::any ? " [{} ...]"
                                                        : " [{}]";
    text += fmt::format(fmt::runtime(form), what);
  }
  const bool has_few_flags = command->flags.size() <= kMostFlagsOfUsage;
  for (const Flag& flag : command->flags) {
    if (flag.is_required) text += fmt::format(" {}", flag.form());
  }
  for (const Flag& flag : command->flags) {
    if (has_few_flags && !flag.is_required) text += fmt::format(" [{}]", flag.form());
  }
  if (!has_few_flags) text += " [FLAG ...]";
  if (command->takes_program) text += " [-- PROGRAM [ARGUMENT ...]]";
  return text;
}

bool NamedCommand::is_program() const { return name.find(' ') == std::string::npos; }

std::vector<std::string> names_of_actions(const Command& command) {
  std::vector<std::string> names;
  for (const Command& action : command.actions) names.emplace_back(action.name);
  return names;
}

std::vector<NamedCommand> all_commands(const NamedCommand& program) {
  std::vector<NamedCommand> all;
  for (const Command& command : program.command->actions) {
    const NamedCommand named = action_of(program, command);
    if (command.actions.empty() || command.run != nullptr) all.push_back(named);
    for (const Command& action : command.actions) all.push_back(action_of(named, action));
  }
  return all;
}

CommandLine parse_command_line(const NamedCommand& program, Arguments arguments) {
  CommandLine line = split(program, arguments);
  auto& [command, asks_for_help, invocation] = line;
  const auto& words = invocation.arguments;
  if (command.command == program.command && !words.empty()) {
    if (looks_like_a_command(words.front())) {
      throw UserError(unknown_name("command", words.front(), names_of_actions(*program.command)) +
                      "; nor is there a config file of that name");
    }
    command = action_of(program, program.command->actions.front());
  }
  check_flags(command, invocation);
  const bool has_word = !command.command->actions.empty() && !words.empty();
  if (has_word && (command.command->run == nullptr || looks_like_a_command(words.front()))) {
    refuse_action(command, words.front());
  }
  if (!asks_for_help && command.command->run != nullptr) {
    check_count(command, invocation);
    check_required(command, invocation);
  }
  return line;
}

NamedCommand find_command(const NamedCommand& program, Arguments words) {
  NamedCommand found = program;
  for (const std::string& word : words) {
    const Command* action = found.command->find(word);
    if (action == nullptr) refuse_action(found, word);
    found = action_of(found, *action);
  }
  return found;
}

}  // namespace phalanx
