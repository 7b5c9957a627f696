// SPDX-License-Identifier: Apache-2.0
// `explain` of fields below the names of a map and the numbers of a list.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/text/help.h"
#include "trainer/config/tree/chosen.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"

namespace phalanx::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

struct Group {
  double scale = 1.5;

  static void describe(Schema<Group>& s) {
    s.field("scale", &Group::scale, "of this group").deprecated("factor");
  }
};

struct Fast {
  double lr = 1.5;
  std::vector<Group> groups;

  static void describe(Schema<Fast>& s) {
    s.field("lr", &Fast::lr, "its rate");
    s.field("groups", &Fast::groups, "parts of it");
  }
};

struct Slow {
  double lr = 0.5;
  double drag = 2;

  static void describe(Schema<Slow>& s) {
    s.field("lr", &Slow::lr, "its rate");
    s.field("drag", &Slow::drag, "what holds it");
  }
};

/// What each of several movers has beside the fields of one alone.
Declaration with_share(Declaration declaration) {
  declaration.add_field({.name = "share",
                         .meaning = "what it moves",
                         .type = {.kind = Type::Kind::integer},
                         .default_value = Node::integer(1)});
  return declaration;
}

Choice movers(bool are_several) {
  Choice choice;
  choice.kind = "mover";
  choice.names = [] { return std::vector<std::string>{"fast", "slow"}; };
  choice.find = [are_several](std::string_view name) -> const Declaration* {
    static const Declaration fast = with_share(declaration<Fast>());
    static const Declaration slow = with_share(declaration<Slow>());
    if (name == "fast") return are_several ? &fast : &declaration<Fast>();
    if (name == "slow") return are_several ? &slow : &declaration<Slow>();
    return nullptr;
  };
  return choice;
}

struct Sets {
  std::map<std::string, std::vector<std::string>> files;
  std::map<std::string, Group> groups;

  static void describe(Schema<Sets>& s) {
    s.field("files", &Sets::files, "files by name");
    s.field("groups", &Sets::groups, "groups by name");
  }
};

struct One {
  std::optional<Chosen> mover;

  static void describe(Schema<One>& s) {
    s.field("mover", &One::mover, "what moves").out_of(movers(false));
  }
};

const Declaration& whole() {
  static const Declaration declared = [] {
    Declaration whole = declaration<One>();
    Type several{.kind = Type::Kind::map};
    several.element = {
        Type{.kind = Type::Kind::section, .choice = std::make_shared<const Choice>(movers(true))}};
    whole.add_field({.name = "movers",
                     .meaning = "what moves, by names",
                     .type = several,
                     .default_value = Node::map()});
    whole.add_section("sets", declaration<Sets>(), "sets of data");
    return whole;
  }();
  return declared;
}

std::string explained(const std::string& path) {
  return explain(whole(), path, nullptr, {.width = 200});
}

std::string explained(const std::string& path, const std::string& yaml) {
  Diagnostics diagnostics;
  const Node config = resolve(whole(), parse_yaml(yaml, "test.yaml", diagnostics), diagnostics);
  diagnostics.throw_if_any();
  return explain(whole(), path, &config, {.width = 200});
}

constexpr const char* kCritic =
    "movers: {critic: {name: slow, lr: 0.25}, other: {name: fast, groups: [{scale: 3.5}]}}";

TEST(ExplainNames, ShowsAFieldOfEachClassThatANameMayHave) {
  EXPECT_EQ(explained("movers.critic.lr"),
            "  with movers.critic.name: fast\n"
            "movers.critic.lr  (a real number; default 1.5)\n"
            "    its rate\n"
            "  with movers.critic.name: slow\n"
            "movers.critic.lr  (a real number; default 0.5)\n"
            "    its rate\n");
}

TEST(ExplainNames, ShowsWithAConfigTheClassOfThisNameAndItsValue) {
  EXPECT_EQ(explained("movers.critic.lr", kCritic),
            "  with movers.critic.name: slow\n"
            "movers.critic.lr  (a real number; default 0.5)\n"
            "    its rate\n"
            "    here 0.25  # test.yaml:1\n");
  EXPECT_THAT([] { explained("movers.critic.groups", kCritic); },
              ThrowsMessage<UserError>(HasSubstr("it belongs to movers.critic.name: fast")));
}

TEST(ExplainNames, ShowsAllThatANameHasEachOnce) {
  const std::string text = explained("movers.critic");
  for (const char* const field : {"movers.critic.name  (", "movers.critic.share  (",
                                  "movers.critic.drag  (", "movers.critic.groups[].scale  ("}) {
    EXPECT_THAT(text, HasSubstr(field));
    EXPECT_EQ(text.find(field), text.rfind(field)) << field;
  }
  EXPECT_THAT(explained("movers"), Not(HasSubstr(".lr"))) << "these fields stand above";
}

TEST(ExplainNames, ShowsFieldsOfAnElement) {
  EXPECT_THAT(
      explained("movers.other.groups[0].scale", kCritic),
      HasSubstr("movers.other.groups[0].scale  (a real number; default 1.5; formerly factor)\n"
                "    of this group\n    here 3.5  # test.yaml:1\n"));
  EXPECT_THAT(explained("mover.groups[1].factor"), HasSubstr("mover.groups[1].scale  ("));
}

TEST(ExplainNames, ShowsFieldsOfSectionsByName) {
  EXPECT_THAT(explained("sets.groups.a.scale", "sets: {groups: {a: {scale: 4.5}}}"),
              AllOf(StartsWith("sets.groups.a.scale  ("), HasSubstr("here 4.5  # ")));
}

TEST(ExplainNames, ShowsTheMapOfAPlainValueWithTheValue) {
  EXPECT_EQ(explained("sets.files.wiki", "sets: {files: {wiki: [a, b], news: [c]}}"),
            "sets.files  (a map of names to lists (each a list of texts); default {})\n"
            "    files by name\n"
            "    here [a, b]  # test.yaml:1\n");
  EXPECT_THAT(explained("sets.files.wiki"), Not(HasSubstr("here")));
}

TEST(ExplainNames, AsksForTheFieldThatALastNameOrAValueIsOf) {
  EXPECT_THAT([] { explained("drag"); },
              ThrowsMessage<UserError>(
                  HasSubstr("there is no field 'drag'; did you mean 'mover.drag'? `")));
  EXPECT_THAT([] { explained("drga"); },
              ThrowsMessage<UserError>(HasSubstr("did you mean 'mover.drag'? `")));
  EXPECT_THAT([] { explained("slow"); },
              ThrowsMessage<UserError>(HasSubstr(
                  "there is no field 'slow'; 'slow' is a value of 'mover.name', which explain "
                  "takes; `")));
}

TEST(ExplainNames, RefusesWhatNoNameHas) {
  EXPECT_THAT([] { explained("movers.critic.lrr"); },
              ThrowsMessage<UserError>(HasSubstr("did you mean 'movers.critic.lr'?")));
  EXPECT_THAT([] { explained("sets.files.wiki.more"); },
              ThrowsMessage<UserError>(HasSubstr("there is no field 'sets.files.wiki.more'")));
}

}  // namespace
}  // namespace phalanx::config
