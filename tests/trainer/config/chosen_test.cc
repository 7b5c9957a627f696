// SPDX-License-Identifier: Apache-2.0
// Classes that a list or an optional member picks by name, with fields of their own.

#include "trainer/config/tree/chosen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/text/json_schema.h"
#include "trainer/config/text/minimal.h"
#include "trainer/config/tree/fields.h"
#include "trainer/config/tree/no_fields.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"

namespace phalanx::config {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct CsvConfig {
  std::string path = "metrics.csv";
  std::int64_t digits = 6;

  static void describe(Schema<CsvConfig>& s) {
    s.field("path", &CsvConfig::path, "the file");
    s.field("digits", &CsvConfig::digits, "of a real number").at_least(1);
  }
};

Choice sinks() {
  Choice choice;
  choice.kind = "sink";
  choice.names = [] { return std::vector<std::string>{"csv", "screen"}; };
  choice.find = [](std::string_view name) -> const Declaration* {
    if (name == "csv") return &declaration<CsvConfig>();
    return name == "screen" ? &declaration<NoFields>() : nullptr;
  };
  return choice;
}

struct Logging {
  std::vector<Chosen> sinks = {"screen", "csv"};
  std::optional<Chosen> extra;
  Chosen first = "csv";

  static void describe(Schema<Logging>& s) {
    s.field("sinks", &Logging::sinks, "where records go").out_of(config::sinks());
    s.field("extra", &Logging::extra, "one more").out_of(config::sinks()).resume_may_change();
    s.field("first", &Logging::first, "the first one").out_of(config::sinks());
  }
};

Node resolved(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  Diagnostics diagnostics;
  Node tree = parse_yaml(yaml, "test.yaml", diagnostics);
  for (const std::string& argument : overrides) apply_override(tree, argument, diagnostics);
  Node result = resolve(declaration<Logging>(), tree, diagnostics);
  diagnostics.throw_if_any();
  return result;
}

std::string mistakes(const std::string& yaml) {
  try {
    resolved(yaml);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(ListOfChoices, HoldsNamesAndSections) {
  const Node config = resolved("sinks: [screen, {name: csv, path: x}, csv]");
  EXPECT_EQ(print_inline(*config.find("sinks")),
            "[{name: screen}, {name: csv, path: x, digits: 6}, "
            "{name: csv, path: metrics.csv, digits: 6}]");
  const auto logging = read<Logging>(config);
  ASSERT_EQ(logging.sinks.size(), 3U);
  EXPECT_EQ(logging.sinks[0].name(), "screen");
  EXPECT_EQ(read<CsvConfig>(logging.sinks[1].section()).path, "x");
  EXPECT_EQ(read<CsvConfig>(logging.sinks[2].section()).digits, 6);
  EXPECT_FALSE(logging.extra.has_value());
}

TEST(ListOfChoices, HasADefault) {
  const auto logging = read<Logging>(resolved("{}"));
  ASSERT_EQ(logging.sinks.size(), 2U);
  EXPECT_EQ(read<CsvConfig>(logging.sinks[1].section()).path, "metrics.csv");
  EXPECT_EQ(read<CsvConfig>(logging.first.section()).digits, 6);
  EXPECT_EQ(read_defaults<Logging>().sinks[1].name(), "csv") << "not resolved: its name alone";
}

TEST(ListOfChoices, IsGivenByOverrides) {
  const auto logging =
      read<Logging>(resolved("sinks: [csv]", {"sinks=[screen,{name: csv, digits: 3}]",
                                              "extra=screen", "first={name: csv, path: y}"}));
  EXPECT_EQ(read<CsvConfig>(logging.sinks[1].section()).digits, 3);
  EXPECT_EQ(logging.extra->name(), "screen");
  EXPECT_EQ(read<CsvConfig>(logging.first.section()).path, "y");
}

TEST(ListOfChoices, TakesTheDefaultsNameWhereASectionHasNone) {
  const auto by_override = read<Logging>(resolved("{}", {"first.path=y"}));
  EXPECT_EQ(by_override.first.name(), "csv");
  EXPECT_EQ(read<CsvConfig>(by_override.first.section()).path, "y");
  const auto by_file = read<Logging>(resolved("first: {digits: 3}"));
  EXPECT_EQ(read<CsvConfig>(by_file.first.section()).digits, 3);
  EXPECT_EQ(read<Logging>(resolved("first: {}")).first.name(), "csv");
  EXPECT_EQ(read<Logging>(resolved("first: {path: y}", {"first=null"})).first.name(), "csv");
  EXPECT_EQ(read<Logging>(resolved("first: csv", {"first=screen"})).first.name(), "screen");
  EXPECT_THAT(mistakes("first: {pth: y}"), HasSubstr("first.pth: unknown key in sink 'csv'"));
  EXPECT_THAT(mistakes("extra: {path: y}"), HasSubstr("a mandatory value is missing"))
      << "nobody is the default there";
}

struct Detailed {
  Chosen first = [] {
    Node section = Node::map();
    section.set("name", Node::string("csv"));
    section.set("digits", Node::integer(3));
    return Chosen(std::move(section));
  }();

  static void describe(Schema<Detailed>& s) {
    s.field("first", &Detailed::first, "the first one").out_of(config::sinks());
  }
};

TEST(ListOfChoices, KeepsTheDefaultsFieldsWithItsName) {
  const auto first_of = [](const std::string& yaml) {
    Diagnostics diagnostics;
    const Node tree = parse_yaml(yaml, "test.yaml", diagnostics);
    const Node config = resolve(declaration<Detailed>(), tree, diagnostics);
    diagnostics.throw_if_any();
    return read<CsvConfig>(read<Detailed>(config).first.section());
  };
  EXPECT_EQ(first_of("first: {path: y}").digits, 3);
  EXPECT_EQ(first_of("first: {path: y}").path, "y");
  EXPECT_EQ(first_of("first: csv").digits, 6) << "a name brings its class's own defaults";
}

TEST(ListOfChoices, NamesMistakesWithTheirPlace) {
  EXPECT_THAT(mistakes("sinks: [screen, {name: cvs}]"),
              HasSubstr("sinks[1].name: unknown sink 'cvs'"));
  EXPECT_THAT(
      mistakes("sinks: [screen, {name: screen, path: x}]"),
      HasSubstr("sinks[1].path: unknown key; sink 'screen' has no fields; it belongs to csv"));
  EXPECT_THAT(mistakes("sinks: [{name: csv, digits: 0}]"),
              HasSubstr("sinks[0].digits: '0' is out of range"));
  EXPECT_THAT(mistakes("sinks: [[csv]]"), HasSubstr("sinks[0]: found a list"));
  EXPECT_THAT(mistakes("sinks: csv"), HasSubstr("expected a list of sinks: write [csv]"));
  EXPECT_THAT(mistakes("extra: nothing"), HasSubstr("unknown sink 'nothing'"));
}

TEST(ListOfChoices, IsWrittenAsItReadsBack) {
  const Node config = resolved("{sinks: [screen, {name: csv, path: x}], extra: csv}");
  EXPECT_TRUE(same_value(config, resolved(print(config)))) << print(config);
  const Node minimal_config = minimal(declaration<Logging>(), config);
  EXPECT_EQ(print_inline(minimal_config),
            "{sinks: [screen, {name: csv, path: x}], extra: {name: csv}}");
  EXPECT_TRUE(same_value(config, resolved(print(minimal_config))));
  EXPECT_EQ(print_inline(minimal(declaration<Logging>(), resolved("sinks: [screen, {name: csv}]"))),
            "{}")
      << "the default";
  const Node stored = write(read<Logging>(config));
  EXPECT_TRUE(same_value(config, resolved(print(stored)))) << print(stored);
}

TEST(ListOfChoices, IsShownWithTheFieldsOfItsClasses) {
  std::vector<std::string> paths;
  for (const FieldEntry& entry : field_entries(declaration<Logging>())) {
    paths.push_back(entry.path);
    if (entry.path == "sinks") {
      EXPECT_EQ(entry.type, "a list of sinks");
      EXPECT_EQ(entry.default_text, "[screen, csv]");
    }
    if (entry.path == "sinks[].digits") {
      EXPECT_EQ(entry.condition, "sinks[].name: csv");
    }
    if (entry.path == "extra.name") {
      EXPECT_EQ(entry.type, "one of csv, screen, or null");
    }
  }
  EXPECT_THAT(
      paths, ElementsAre("sinks", "sinks[].name", "sinks[].path", "sinks[].digits", "extra.name",
                         "extra.path", "extra.digits", "first.name", "first.path", "first.digits"));
  const std::string schema = json_schema({{"main", &declaration<Logging>()}});
  EXPECT_THAT(schema, HasSubstr("\"const\": \"csv\""));
  EXPECT_THAT(schema, HasSubstr("short for {name: ...}"));
}

struct WithoutClasses {
  std::vector<Chosen> sinks;
  static void describe(Schema<WithoutClasses>& s) { s.field("sinks", &WithoutClasses::sinks, ""); }
};

TEST(ListOfChoices, SaysOutOfWhichClasses) {
  EXPECT_THROW(declaration<WithoutClasses>(), std::logic_error);
}

}  // namespace
}  // namespace phalanx::config
