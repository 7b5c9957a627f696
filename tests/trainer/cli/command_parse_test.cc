// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/command_parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Count = Positional::Count;

int run_nothing(const Invocation&) { return 0; }

const Command& table() {
  static const Command table{
      .name = "tool",
      .flags = {{"--version", "which one"}},
      .actions = {{.name = "cut",
                   .positionals = {{.name = "FILE"}, {.name = "key=value", .count = Count::any}},
                   .flags = {{"--fast", "at once"},
                             {"--dry", "not at all"},
                             {"--size", "how large", Flag::Takes::listed, {{"small"}, {"big"}}},
                             {"--last", "how many", Flag::Takes::count, {}, "-l"},
                             {"--output", "where to", Flag::Takes::new_file}},
                   .run = run_nothing},
                  {.name = "show",
                   .actions = {{.name = "one",
                                .positionals = {{.name = "A"},
                                                {.name = "B", .count = Count::optional}},
                                .run = run_nothing},
                               {.name = "all", .run = run_nothing}}},
                  {.name = "pack",
                   .positionals = {{.name = "FILE"}},
                   .flags = {{"--fast", "at once"},
                             {.name = "--into",
                              .summary = "the new file",
                              .takes = Flag::Takes::path,
                              .is_required = true}},
                   .run = run_nothing},
                  {.name = "start",
                   .positionals = {{.name = "FILE"}},
                   .flags = {{"--max-tries", "how often", Flag::Takes::text}},
                   .takes_program = true,
                   .actions = {{.name = "far", .run = run_nothing}},
                   .run = run_nothing}},
  };
  return table;
}

NamedCommand tool() { return {&table(), "tool"}; }

CommandLine parse(const std::vector<std::string>& arguments) {
  return parse_command_line(tool(), arguments);
}

std::string refusal(const std::vector<std::string>& arguments) {
  try {
    parse(arguments);
  } catch (const UserError& error) {
    return error.what();
  }
  return "taken";
}

TEST(CommandParse, FindsACommandOrAnActionOfOne) {
  EXPECT_EQ(parse({"cut", "a.yaml"}).command.name, "tool cut");
  EXPECT_EQ(parse({"show", "all"}).command.name, "tool show all");
  EXPECT_EQ(parse({"show", "all"}).command.command, table().find("show")->find("all"));
  EXPECT_EQ(parse({}).command.command, &table());
}

TEST(CommandParse, TheFirstCommandIsMeantWhereNoneIsNamed) {
  const CommandLine line = parse({"a.yaml", "b=1"});
  EXPECT_EQ(line.command.name, "tool cut");
  EXPECT_THAT(line.invocation.arguments, ElementsAre("a.yaml", "b=1"));
  EXPECT_THAT(parse({"./cut"}).invocation.arguments, ElementsAre("./cut")) << "a file of its name";
  EXPECT_THAT(parse({"a.yaml", "cut"}).invocation.arguments, ElementsAre("a.yaml", "cut"))
      << "behind an argument it is one";
}

TEST(CommandParse, ACommandMayStandWithOrWithoutAnAction) {
  EXPECT_EQ(parse({"start", "a.yaml"}).command.name, "tool start");
  EXPECT_EQ(parse({"start", "far"}).command.name, "tool start far");
  EXPECT_THAT(refusal({"start", "fat"}),
              HasSubstr("unknown action 'fat'; did you mean 'far'? There are: far"));
  EXPECT_THAT(refusal({"start"}), HasSubstr("FILE is missing"));
}

TEST(CommandParse, AProgramFollowsTwoDashes) {
  const Invocation invocation =
      parse({"start", "--max-tries=3", "--", "a", "--b", "--"}).invocation;
  EXPECT_THAT(invocation.program, ElementsAre("a", "--b", "--"));
  EXPECT_THAT(invocation.arguments, IsEmpty());
  EXPECT_THAT(refusal({"start", "a.yaml", "--", "b"}), HasSubstr("'a.yaml' stands before `--`"));
}

TEST(CommandParse, UnderscoresOfAFlagAreDashes) {
  EXPECT_EQ(parse({"start", "./a", "--max_tries", "a_b"}).invocation.value("--max-tries"), "a_b");
  EXPECT_EQ(parse({"start", "./a", "--max_tries=a_b"}).invocation.value("--max-tries"), "a_b");
}

TEST(CommandParse, OverridesOfEveryFormPass) {
  const std::vector<std::string> arguments{"a.yaml", "~a",       "+a=b",  "++a=-1",
                                           "a=-1",   "a=--fast", "a[0]=", "a='x y'"};
  EXPECT_EQ(parse(arguments).invocation.arguments, arguments);
}

TEST(CommandParse, FlagsMayStandAnywhereAmongTheArguments) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"cut", "--fast", "a.yaml", "b=1"},
                                             {"cut", "a.yaml", "--fast", "b=1"},
                                             {"cut", "a.yaml", "b=1", "--fast"},
                                             {"--fast", "cut", "a.yaml", "b=1"}}) {
    const Invocation invocation = parse(arguments).invocation;
    EXPECT_THAT(invocation.arguments, ElementsAre("a.yaml", "b=1"));
    EXPECT_TRUE(invocation.has("--fast"));
    EXPECT_FALSE(invocation.has("--dry"));
  }
  EXPECT_TRUE(parse({"--version"}).invocation.has("--version"));
}

TEST(CommandParse, AFlagsValueStandsBehindItOrBehindAnEqualsSign) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"cut", "--size=big", "a.yaml", "b=1"}, {"cut", "a.yaml", "--size", "big", "b=1"}}) {
    const Invocation invocation = parse(arguments).invocation;
    EXPECT_THAT(invocation.arguments, ElementsAre("a.yaml", "b=1"));
    EXPECT_EQ(invocation.value("--size"), "big");
  }
  EXPECT_EQ(parse({"cut", "a", "--size=big", "--size", "small"}).invocation.value("--size"),
            "small");
  EXPECT_EQ(parse({"cut", "a", "--fast"}).invocation.value("--size"), std::nullopt);
  EXPECT_EQ(refusal({"cut", "a", "--size=huge"}),
            "unknown value of --size 'huge'; there are: big, small");
  EXPECT_EQ(refusal({"cut", "a", "--size=smal"}),
            "unknown value of --size 'smal'; did you mean 'small'? There are: small, big");
  EXPECT_EQ(refusal({"cut", "a", "--size", "--fast"}),
            "unknown value of --size '--fast'; there are: small, big");
  EXPECT_EQ(refusal({"cut", "a", "--size"}), "option --size lacks its value: --size=small|big");
  EXPECT_EQ(refusal({"cut", "a", "--size="}), "unknown value of --size ''; there are: big, small");
}

TEST(CommandParse, ALetterIsAnotherNameOfAFlag) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"cut", "-l", "3", "a"}, {"cut", "-l=3", "a"}, {"cut", "a", "-l3"}}) {
    EXPECT_EQ(parse(arguments).invocation.count("--last"), 3);
    EXPECT_THAT(parse(arguments).invocation.arguments, ElementsAre("a"));
  }
  EXPECT_EQ(refusal({"cut", "a", "-l"}), "option --last lacks its value: --last=N");
}

TEST(CommandParse, ACountIsAWholeNumberFromOneOn) {
  EXPECT_EQ(parse({"cut", "a", "--last=12"}).invocation.count("--last"), 12);
  EXPECT_EQ(parse({"cut", "--last", "3", "a"}).invocation.count("--last"), 3);
  EXPECT_EQ(parse({"cut", "a"}).invocation.count("--last"), std::nullopt);
  for (const std::string wrong : {"0", "-1", "two", "1.5", ""}) {
    EXPECT_EQ(refusal({"cut", "a", "--last=" + wrong}),
              "option --last takes a whole number from 1 on: '" + wrong + "'");
  }
  EXPECT_EQ(refusal({"cut", "a", "--last"}), "option --last lacks its value: --last=N");
}

TEST(CommandParse, ANewFileHasAFolderAndIsNotThereYet) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "new.yaml").string();
  EXPECT_EQ(parse({"cut", "a", "--output", path}).invocation.value("--output"), path);
  EXPECT_EQ(parse({"cut", "a", "--output=plain"}).invocation.value("--output"), "plain");
  EXPECT_THAT(refusal({"cut", "a", "--output=" + folder.path().string()}),
              HasSubstr("option --output takes the name of a file"));
  EXPECT_THAT(refusal({"cut", "a", "--output="}), HasSubstr("takes the name of a file: ''"));
  EXPECT_THAT(refusal({"cut", "a", "--output=" + (folder.path() / "no/x").string()}),
              HasSubstr("no' does not exist"));
  std::ofstream(path) << "mine";
  EXPECT_THAT(refusal({"cut", "a", "--output=" + path}),
              HasSubstr("exists; remove it, or name another file"));
}

TEST(CommandParse, BehindTwoDashesThereAreNoFlagsAndNoCommands) {
  const CommandLine line = parse({"cut", "--dry", "--", "--fast", "-x", "--"});
  EXPECT_THAT(line.invocation.arguments, ElementsAre("--fast", "-x", "--"));
  EXPECT_THAT(line.invocation.flags, ElementsAre("--dry"));
  EXPECT_EQ(parse({"--", "./show"}).command.name, "tool cut");
}

TEST(CommandParse, HelpIsAskedForWithoutTheArguments) {
  for (const auto& [arguments, name] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--help"}, "tool"},
           {{"-h"}, "tool"},
           {{"cut", "--help"}, "tool cut"},
           {{"--help", "cut"}, "tool cut"},
           {{"show", "--help"}, "tool show"},
           {{"show", "one", "-h"}, "tool show one"},
           {{"a.yaml", "--help"}, "tool cut"}}) {
    const CommandLine line = parse(arguments);
    EXPECT_TRUE(line.asks_for_help);
    EXPECT_EQ(line.command.name, name);
    EXPECT_THAT(line.invocation.flags, IsEmpty());
  }
  EXPECT_FALSE(parse({"show", "all"}).asks_for_help);
}

TEST(CommandParse, RefusesWhatThereIsNotAndNamesTheNearest) {
  EXPECT_EQ(
      refusal({"shw"}),
      "unknown command 'shw'; did you mean 'show'? There are: show, cut, pack, start; nor is there "
      "a config file of that name");
  EXPECT_EQ(
      refusal({"show", "al"}),
      "unknown action 'al'; did you mean 'all'? There are: all, one; `tool show --help` lists "
      "them");
  EXPECT_THAT(refusal({"cut", "a.yaml", "--fats"}),
              HasSubstr("unknown option '--fats'; did you mean '--fast'? There are: --fast, "));
  EXPECT_THAT(refusal({"cut", "a.yaml", "--out=/a/long/path"}),
              HasSubstr("unknown option '--out'; did you mean '--output'? There are: "));
  EXPECT_THAT(refusal({"cut", "a.yaml", "-f"}), HasSubstr("unknown option '-f'"));
  EXPECT_THAT(refusal({"cut", "--version"}), HasSubstr("unknown option '--version'"));
  EXPECT_THAT(refusal({"cut", "--helpp", "--help"}), HasSubstr("unknown option '--helpp'"));
  EXPECT_EQ(refusal({"cut", "a.yaml", "--fast=1"}), "option --fast takes no value: '--fast=1'");
}

TEST(CommandParse, RefusesTooFewAndTooManyArguments) {
  EXPECT_EQ(refusal({"cut"}),
            "FILE is missing: tool cut FILE [key=value ...] [--fast] [--dry] "
            "[--size=small|big] [--last=N] [--output=FILE]");
  EXPECT_EQ(refusal({"show", "one"}), "A is missing: tool show one A [B]");
  EXPECT_EQ(refusal({"show", "one", "a", "b", "c"}),
            "'c' is one argument too many: tool show one A [B]");
  EXPECT_EQ(refusal({"show", "one", "a"}), "taken");
  EXPECT_EQ(refusal({"show", "all", "a"}), "'a' is one argument too many: tool show all");
}

TEST(CommandParse, RefusesACommandWithoutAFlagThatItNeeds) {
  EXPECT_EQ(refusal({"pack", "a", "--fast"}),
            "option --into is missing: --into=PATH, the new file");
  EXPECT_EQ(refusal({"pack", "a", "--into=b"}), "taken");
  EXPECT_EQ(refusal({"pack"}), "FILE is missing: tool pack FILE --into=PATH [--fast]");
  EXPECT_TRUE(parse({"pack", "--help"}).asks_for_help);
}

TEST(CommandParse, ListsCommandsAndFindsThemByTheirWords) {
  std::vector<std::string> names;
  for (const NamedCommand& command : all_commands(tool())) names.push_back(command.name);
  EXPECT_THAT(names, ElementsAre("tool cut", "tool show one", "tool show all", "tool pack",
                                 "tool start", "tool start far"));
  EXPECT_EQ(find_command(tool(), {}).usage(), "tool cut|show|pack|start [--version]");
  EXPECT_EQ(find_command(tool(), std::vector<std::string>{"show", "one"}).name, "tool show one");
  EXPECT_THROW(find_command(tool(), std::vector<std::string>{"show", "two"}), UserError);
}

}  // namespace
}  // namespace phalanx
