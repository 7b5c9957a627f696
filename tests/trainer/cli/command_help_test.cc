// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/command_help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "trainer/base/display_width.h"
#include "trainer/base/wrap.h"
#include "trainer/commands/checkpoint/export_format.h"
#include "trainer/commands/command_table.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// The program, its commands and their actions.
std::vector<NamedCommand> everything() {
  std::vector<NamedCommand> all = all_commands(program());
  all.push_back(program());
  for (const Command& command : program().command->actions) {
    if (!command.actions.empty()) all.push_back({&command, "trainer " + std::string(command.name)});
  }
  return all;
}

// The first block of text of the page.
std::string commands_of_page() {
  std::ifstream file("docs/commands.md");
  std::string line, block;
  while (std::getline(file, line) && line != "```text") continue;
  while (std::getline(file, line) && line != "```") block += line + "\n";
  return block;
}

TEST(CommandTable, IsWhatItsPageSays) {
  std::string expected;
  for (const NamedCommand& named : all_commands(program())) {
    expected += named.usage() + "\n    " + std::string(named.command->summary) + "\n";
  }
  EXPECT_EQ(commands_of_page(), expected);
}

TEST(CommandTable, SaysOfEveryCommandWhatItIsFor) {
  for (const NamedCommand& named : everything()) {
    const Command& command = *named.command;
    EXPECT_THAT(std::string(command.help), Not(IsEmpty())) << named.name;
    EXPECT_THAT(std::string(command.help), ::testing::EndsWith(".")) << named.name;
    if (command.name != "trainer") {
      EXPECT_THAT(std::string(command.summary), Not(IsEmpty())) << named.name;
      EXPECT_LE(display_width(command.summary), 80U) << named.name;
    }
    EXPECT_TRUE(command.run != nullptr || !command.actions.empty()) << named.name;
    const auto takes_words = [](const Positional& p) { return p.takes == Positional::Takes::word; };
    EXPECT_EQ(std::any_of(command.positionals.begin(), command.positionals.end(), takes_words),
              command.words != nullptr)
        << named.name;
  }
}

TEST(CommandTable, ItsExamplesAreRight) {
  for (const NamedCommand& named : everything()) {
    for (const std::string_view example : named.command->examples) {
      std::istringstream text{std::string(example.substr(0, example.find('>')))};
      std::vector<std::string> arguments;
      for (std::string word; text >> word;) arguments.push_back(word);
      const CommandLine line = parse_command_line(program(), arguments);
      const auto& actions = named.command->actions;
      const bool is_of_action =
          std::any_of(actions.begin(), actions.end(), [&](const auto& action) {
            return std::string_view(line.command.name).ends_with(std::string_view(action.name));
          });
      EXPECT_TRUE(named.name == "trainer" || named.name == line.command.name || is_of_action)
          << example;
    }
  }
}

TEST(CommandHelp, OfTheProgramListsAllCommands) {
  const std::string help = command_help(program(), {.width = 80});
  EXPECT_THAT(help, StartsWith("usage: trainer [train] CONFIG [CONFIG ...] [key=value ...]\n"
                               "       trainer COMMAND [ARGUMENT ...]\n\n"));
  for (const NamedCommand& named : all_commands(program())) {
    const std::string name = named.name.substr(named.name.find(' ') + 1);
    EXPECT_THAT(help, HasSubstr("\n  " + name + "  "));
  }
  EXPECT_THAT(help, AllOf(HasSubstr("\n  --help, -h "), HasSubstr("\n  --version ")));
}

TEST(CommandHelp, OfACommandTellsHowItIsCalled) {
  const std::vector<std::string> words{"config", "print"};
  const std::string help = command_help(find_command(program(), words), {.width = 200});
  EXPECT_THAT(help, StartsWith("usage: trainer config print CONFIG [CONFIG ...] [key=value ...] "
                               "[--minimal] [--json]\n\n"));
  EXPECT_THAT(help, AllOf(HasSubstr("\nflags:\n  --help, -h"), HasSubstr("\n  --minimal "),
                          HasSubstr("\nexamples:\n  trainer config print my.yaml\n")));
  EXPECT_THAT(help, Not(HasSubstr("actions:")));
}

TEST(CommandHelp, OfACommandWithActionsShowsBothUses) {
  const std::vector<std::string> words{"launch"};
  const std::string help = command_help(find_command(program(), words), {.width = 200});
  EXPECT_THAT(help, StartsWith("usage: trainer launch CONFIG [CONFIG ...] [key=value ...] "
                               "[FLAG ...] [-- PROGRAM [ARGUMENT ...]]\n"
                               "       trainer launch ACTION [ARGUMENT ...]\n\n"));
  EXPECT_THAT(
      help, AllOf(HasSubstr("\nactions:\n  kubernetes  submit"), HasSubstr("\n  --nnodes=TEXT ")));
}

TEST(CommandHelp, DescribesEachFormatOfAnExport) {
  const std::vector<std::string> words{"checkpoint", "export"};
  const std::string help = command_help(find_command(program(), words), {.width = 200});
  for (const ExportFormat& format : export_formats()) {
    EXPECT_THAT(help,
                HasSubstr("; " + std::string(format.name) + ": " + std::string(format.meaning)));
  }
  EXPECT_THAT(help, HasSubstr("\n  --format=NAME "));
}

TEST(ExportFormats, AreChosenByNameAndTheFirstByDefault) {
  for (const ExportFormat& format : export_formats()) {
    EXPECT_NE(format.write, nullptr) << format.name;
    const Invocation named{.flags = {"--format=" + std::string(format.name)}};
    EXPECT_EQ(&export_format(named), &format);
  }
  EXPECT_EQ(export_format({}).name, "hf") << "scripts rely on it";
  EXPECT_EQ(&export_format({}), &export_formats().front());
}

TEST(CommandHelp, KeepsToTheWidthWhateverItIs) {
  for (const std::size_t width : {40U, 60U, 80U, 100U, 200U}) {
    for (const NamedCommand& named : everything()) {
      std::istringstream help(command_help(named, {.width = width}));
      for (std::string line; std::getline(help, line);) {
        // A word is not broken, however long.
        const bool is_word = line.find(' ', line.find_first_not_of(' ')) == std::string::npos;
        EXPECT_TRUE(is_word || display_width(line) <= width) << width << ": " << line;
      }
    }
  }
}

TEST(CommandHelp, ColoursHeadingsAndNothingElse) {
  for (const NamedCommand& named : everything()) {
    if (named.command->details != nullptr) continue;
    std::string coloured = command_help(named, {.width = 60, .colour = true});
    EXPECT_THAT(coloured, StartsWith("\x1b[1musage:\x1b[0m trainer"));
    for (const std::string escape : {"\x1b[1m", "\x1b[0m"}) {
      for (std::size_t at = 0; (at = coloured.find(escape)) != std::string::npos;) {
        coloured.erase(at, escape.size());
      }
    }
    EXPECT_EQ(coloured, command_help(named, {.width = 60}));
  }
}

}  // namespace
}  // namespace phalanx
