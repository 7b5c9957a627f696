// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/command_help.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "trainer/base/wrap.h"
#include "trainer/cli/columns.h"

namespace phalanx {
namespace {

constexpr std::string_view kUsage = "usage:";
constexpr std::size_t kIndent = 4;

std::string paragraph(const std::string& text, const TextStyle& style, std::size_t indent = 0) {
  return (style.width > 0 ? config::wrap(text, style.width, indent) : text) + "\n";
}

std::string list(std::string_view heading, const std::vector<Row>& rows, const TextStyle& style) {
  if (rows.empty()) return "";
  return "\n" + style.heading(heading) + "\n" + two_columns(rows, style);
}

// The program is called by its first command, named or not, or by another.
std::vector<std::string> usages(const NamedCommand& named) {
  if (!named.is_program() && named.command->run != nullptr && !named.command->actions.empty()) {
    return {named.usage(), named.name + " ACTION [ARGUMENT ...]"};
  }
  if (!named.is_program()) return {named.usage()};
  const Command& first = named.command->actions.front();
  const NamedCommand named_or_not{&first, fmt::format("{} [{}]", named.name, first.name)};
  return {named_or_not.usage(), named.name + " COMMAND [ARGUMENT ...]"};
}

// Its heading is painted at the end: wrapping counts characters.
std::string usage_lines(const NamedCommand& named, const TextStyle& style) {
  std::string text;
  for (const std::string& usage : usages(named)) {
    const std::string label = text.empty() ? std::string(kUsage) : std::string(kUsage.size(), ' ');
    text += paragraph(label + " " + usage, style, kUsage.size() + 1 + kIndent);
  }
  return style.heading(kUsage) + text.substr(kUsage.size());
}

std::vector<Row> action_rows(const NamedCommand& named) {
  std::vector<Row> rows;
  for (const NamedCommand& action : all_commands(named)) {
    rows.push_back(
        {action.name.substr(named.name.size() + 1), std::string(action.command->summary)});
  }
  return rows;
}

std::vector<Row> flag_rows(const NamedCommand& named) {
  std::vector<Row> rows{{fmt::format("{}, -h", kHelpFlag), "this text"}};
  for (const Flag& flag : named.command->flags) {
    std::string text(flag.summary);
    for (const auto& [name, meaning] : flag.values) {
      if (!meaning.empty()) text += fmt::format("; {}: {}", name, meaning);
    }
    const std::string letter = flag.letter.empty() ? "" : fmt::format(", {}", flag.letter);
    rows.push_back({flag.form() + letter, std::move(text)});
  }
  return rows;
}

std::vector<Row> example_rows(const Command& command) {
  std::vector<Row> rows;
  for (const std::string_view example : command.examples) {
    rows.push_back({fmt::format("trainer {}", example), ""});
  }
  return rows;
}

}  // namespace

std::string command_help(const NamedCommand& named, const TextStyle& style) {
  const Command& command = *named.command;
  std::string text = usage_lines(named, style) + "\n" + paragraph(std::string(command.help), style);
  text += list(named.is_program() ? "commands:" : "actions:", action_rows(named), style);
  text += list("flags:", flag_rows(named), style);
  text += list("examples:", example_rows(command), style);
  if (command.details != nullptr) text += "\n" + command.details(style);
  return text;
}

}  // namespace phalanx
