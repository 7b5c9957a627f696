// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/completion_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "trainer/commands/checkpoint/export_format.h"
#include "trainer/commands/command_table.h"
#include "trainer/config/tree/fields.h"
#include "trainer/registry/trainers.h"

namespace phalanx::tiny {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

// What may follow, by the kind of line and what it is about.
using Table = std::map<std::pair<std::string, std::string>, std::vector<std::string>>;

const Table& table() {
  static const Table table = [] {
    Table table;
    std::istringstream lines(completion_table(program()));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      std::vector<std::string> words;
      for (std::string word; std::getline(fields, word, '\t');) words.push_back(word);
      if (words.size() < 3) ADD_FAILURE() << "too short a line: " << line;
      const bool is_new = table
                              .emplace(std::pair(words.at(0), words.at(1)),
                                       std::vector<std::string>(words.begin() + 2, words.end()))
                              .second;
      EXPECT_TRUE(is_new) << "twice: " << line;
    }
    return table;
  }();
  return table;
}

std::vector<std::string> follow(const std::string& kind, const std::string& about) {
  const auto found = table().find({kind, about});
  return found == table().end() ? std::vector<std::string>() : found->second;
}

TEST(CompletionTable, HoldsEveryCommandWithItsActionsFlagsAndArguments) {
  EXPECT_EQ(follow("action", "").front(), "train") << "meant where none is named";
  EXPECT_THAT(follow("action", ""), IsSupersetOf({"evaluate", "config", "list", "completion"}));
  EXPECT_THAT(follow("action", "config"), IsSupersetOf({"print", "explain", "diff", "schema"}));
  EXPECT_THAT(follow("action", "train"), IsEmpty());
  EXPECT_THAT(follow("flag", ""), ElementsAre("--help", "--version"));
  EXPECT_THAT(follow("flag", "config print"), ElementsAre("--help", "--minimal", "--json"));
  EXPECT_THAT(follow("flag", "checkpoint import"),
              ElementsAre("--help", "--dtype=fp32", "--dtype=bf16", "--dtype=fp16"));
  EXPECT_THAT(follow("takes", "train"), ElementsAre("config", "config*", "override*"));
  EXPECT_THAT(follow("takes", "evaluate"), ElementsAre("run", "path*", "override*"));
  EXPECT_THAT(follow("takes", "config explain"), ElementsAre("key", "config*", "override*"));
  EXPECT_THAT(follow("takes", "config schema"), IsEmpty());
}

TEST(CompletionTable, HoldsEveryFormatOfAnExport) {
  std::vector<std::string> flags{"--help"};
  for (const ExportFormat& format : export_formats()) {
    flags.push_back("--format=" + std::string(format.name));
  }
  flags.insert(flags.end(),
               {"--dtype=fp32", "--dtype=bf16", "--dtype=fp16", "--average", "--base=/"});
  EXPECT_THAT(follow("flag", "checkpoint export"), ElementsAreArray(flags));
}

TEST(CompletionTable, HoldsTheWordsOfEveryPlace) {
  EXPECT_THAT(follow("word", "list"), IsSupersetOf({"models", "tasks", "trainers"}));
  EXPECT_THAT(follow("word", "list models"), ElementsAre("linear", "parrot"));
  EXPECT_THAT(follow("word", "list models linear"), IsEmpty());
  EXPECT_THAT(follow("word", "help"), Contains("config"));
  EXPECT_THAT(follow("word", "help config"), Contains("print"));
}

TEST(CompletionTable, HoldsKeysASectionAtATime) {
  EXPECT_THAT(follow("key", ""), IsSupersetOf({"name=", "training.", "checkpoint.", "optimizer.",
                                               "optimizer=", "model.", "task="}));
  EXPECT_THAT(follow("key", "optimizer"),
              UnorderedElementsAre("name=", "lr=", "groups.", "freeze=", "layer_lr_decay="));
  EXPECT_THAT(follow("key", "task"), IsSupersetOf({"samples=", "fails_at="}));
}

TEST(CompletionTable, HoldsValuesWhereTheyCanBeListed) {
  EXPECT_THAT(follow("value", "name"), ElementsAre("tiny"));
  EXPECT_THAT(follow("value", "model"), ElementsAre("linear", "parrot"));
  EXPECT_THAT(follow("value", "model.name"), ElementsAre("linear", "parrot"));
  EXPECT_THAT(follow("value", "use_double_weight_precision"),
              UnorderedElementsAre("true", "false"));
  EXPECT_THAT(follow("value", "checkpoint.resume"), Contains("auto"));
  EXPECT_THAT(follow("value", "optimizer.lr"), IsEmpty());
}

TEST(CompletionTable, LeadsToEveryDeclaredField) {
  for (const auto& field :
       config::field_entries(TrainerRegistry::instance().at("tiny").declaration())) {
    if (field.path.find("[]") != std::string::npos) continue;     // a number stands there
    if (field.path.find(".NAME") != std::string::npos) continue;  // a name of one's own
    std::string section, rest = field.path;
    for (std::size_t dot = 0; (dot = rest.find('.')) != std::string::npos;) {
      EXPECT_THAT(follow("key", section), Contains(rest.substr(0, dot + 1))) << field.path;
      section += (section.empty() ? "" : ".") + rest.substr(0, dot);
      rest.erase(0, dot + 1);
    }
    EXPECT_THAT(follow("key", section), Contains(rest + (field.is_section ? "." : "=")));
    for (const std::string& value : field.values) {
      EXPECT_THAT(follow("value", field.path), Contains(value));
    }
  }
}

}  // namespace
}  // namespace phalanx::tiny
