// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/array.h"
#include "trainer/config/tree/fields.h"
#include "trainer/config/tree/ineffective.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/scalar.h"
#include "trainer/config/tree/schema.h"

/// Types with units, maps, numbered enums, presets, former names: from YAML to members and back.
namespace phalanx::config {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

enum class Strategy { full = 1, hybrid = 4 };

struct Inner {
  std::int64_t width = 8;
  std::optional<milliseconds> pause;

  bool operator==(const Inner&) const = default;
  static void describe(Schema<Inner>& s) {
    s.field("width", &Inner::width, "of it").at_least(1);
    s.field("pause", &Inner::pause, "between").greater_than(milliseconds(500));
    s.preset("wide", "wider", [](Inner& inner) { inner.width = 64; });
  }
};

struct Everything {
  milliseconds timeout = minutes(5);
  std::int64_t steps = 100'000;
  std::optional<std::int64_t> limit;
  Strategy strategy = Strategy::hybrid;
  std::map<std::string, double> weights = {{"a", 0.5}};
  std::map<std::string, Inner> parts;
  Inner inner{.width = 16, .pause = {}};
  std::vector<milliseconds> pauses;
  bool sharded = false;
  std::array<double, 2> betas = {0.5, 0.75};

  bool operator==(const Everything&) const = default;
  static void describe(Schema<Everything>& s) {
    s.field("timeout", &Everything::timeout, "how long")
        .deprecated("timeout_seconds", "s")
        .greater_than(seconds(1));
    s.field("steps", &Everything::steps, "how many").count().at_least(1);
    s.field("limit", &Everything::limit, "when to end").count().at_least(1);
    s.field("strategy", &Everything::strategy, "what is sharded")
        .choices({{"FULL", Strategy::full}, {"HYBRID", Strategy::hybrid}})
        .numbered();
    s.field("weights", &Everything::weights, "of each").at_least(0);
    s.field("parts", &Everything::parts, "by name");
    s.field("inner", &Everything::inner, "a section");
    s.field("pauses", &Everything::pauses, "several");
    s.field("sharded", &Everything::sharded, "whether it is").deprecated("is_sharded");
    s.field("betas", &Everything::betas, "two of them").in_range(0, 1);
    s.ineffective({"strategy", "inner.pause"}, "sharded is false",
                  [](const Everything& e) { return !e.sharded; });
    s.preset("sharded", "all of it", [](Everything& e) {
      e.sharded = true;
      e.strategy = Strategy::full;
      e.inner.width = 32;
    });
  }
};

struct Resolved {
  Node tree;
  std::vector<std::string> warnings;

  Everything value() const { return read<Everything>(tree); }
};

Resolved resolve_text(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  Diagnostics diagnostics;
  Node tree = parse_yaml(yaml, "test.yaml", diagnostics);
  for (const std::string& argument : overrides) apply_override(tree, argument, diagnostics);
  Resolved resolved{resolve(declaration<Everything>(), tree, diagnostics), {}};
  diagnostics.throw_if_any();
  for (const Diagnostic& warning : diagnostics.warnings()) {
    resolved.warnings.push_back(warning.path + ": " + warning.message);
  }
  return resolved;
}

std::string error_of(const std::string& yaml) {
  try {
    resolve_text(yaml);
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    return text.substr(0, text.find('\n'));
  }
  return "no error";
}

TEST(Types, AreReadWithTheirUnits) {
  const Everything read =
      resolve_text(
          "{timeout: 90s, steps: 2.5M, limit: 10k, strategy: 1,"
          " weights: {b: 1, c: 0.25}, parts: {x: {width: 3, pause: 2s}, y: wide, z: },"
          " pauses: [1s, 250ms], sharded: true, betas: [0.25, 1]}")
          .value();
  EXPECT_EQ(read.timeout, seconds(90));
  EXPECT_EQ(read.steps, 2'500'000);
  EXPECT_EQ(read.limit, 10'000);
  EXPECT_EQ(read.strategy, Strategy::full);
  EXPECT_EQ(read.weights, (std::map<std::string, double>{{"b", 1}, {"c", 0.25}}));
  EXPECT_EQ(read.parts, (std::map<std::string, Inner>{{"x", {.width = 3, .pause = seconds(2)}},
                                                      {"y", {.width = 64, .pause = {}}},
                                                      {"z", {}}}));
  EXPECT_THAT(read.pauses, ElementsAre(seconds(1), milliseconds(250)));
  EXPECT_THAT(read.betas, ElementsAre(0.25, 1));
}

TEST(Types, ReadBackAsTheyArePrinted) {
  Everything value;
  value.limit = 3;
  value.parts["one"].pause = seconds(90);
  value.weights = {};
  value.pauses = {milliseconds(1), minutes(3)};
  value.strategy = Strategy::full;
  const std::string text = print(write(value));
  EXPECT_EQ(resolve_text(text).value(), value) << text;
  EXPECT_EQ(print(resolve_text(text).tree), text);
  EXPECT_EQ(resolve_text("{}\n").value(), Everything());
}

TEST(Types, AreRefusedWithWhatIsAllowed) {
  EXPECT_EQ(error_of("timeout: 300"),
            "test.yaml:1:10: timeout: '300' has no unit; write 300s, or 300m, ...; expected a "
            "duration (90s, 5m, 1h30m) > 1s");
  EXPECT_EQ(
      error_of("timeout: 1s"),
      "test.yaml:1:10: timeout: '1s' is out of range; expected a duration (90s, 5m, 1h30m) > 1s");
  EXPECT_EQ(error_of("limit: 0"),
            "test.yaml:1:8: limit: '0' is out of range; expected an integer >= 1, or null");
  EXPECT_EQ(error_of("strategy: 2"),
            "test.yaml:1:11: strategy: unknown value '2'; expected one of FULL (1), HYBRID (4)");
  EXPECT_EQ(error_of("strategy: '1'"),
            "test.yaml:1:11: strategy: found the text \"1\"; write it without quotes; expected one "
            "of FULL "
            "(1), HYBRID (4)");
  EXPECT_EQ(error_of("weights: [1]"),
            "test.yaml:1:10: weights: found a list; expected a map of names to real numbers >= 0");
  EXPECT_EQ(error_of("weights: {a: -1}"),
            "test.yaml:1:14: weights.a: '-1' is out of range; expected a real number >= 0");
  EXPECT_EQ(error_of("betas: [0.5]"),
            "test.yaml:1:8: betas: found a list of 1; expected a list of 2 real numbers in [0, 1]");
  EXPECT_EQ(error_of("parts: {x: {wdth: 3}}"),
            "test.yaml:1:13: parts.x.wdth: unknown key in the section 'parts.x'; did you mean "
            "'width'? There are: width, pause");
}

TEST(Null, TakesBackWhatWasGiven) {
  EXPECT_EQ(resolve_text("steps: 5", {"steps=null"}).value().steps, 100'000);
  EXPECT_EQ(resolve_text("{limit: 3}", {"limit=null"}).value().limit, std::nullopt);
  EXPECT_EQ(resolve_text("{inner: {width: 3}}", {"inner=null"}).value().inner.width, 16);
  EXPECT_EQ(resolve_text("{preset: sharded, inner: {width: ~}}").value().inner.width, 32);
  EXPECT_EQ(resolve_text("{inner: }").value().inner.width, 16);
  EXPECT_EQ(error_of("limit: # later"),
            "test.yaml:1:1: limit: nothing is written here; expected an integer >= 1, or null");
}

TEST(Presets, LieBetweenDefaultsAndWhatIsGiven) {
  const Resolved resolved = resolve_text("{preset: sharded, strategy: HYBRID}");
  EXPECT_TRUE(resolved.value().sharded);
  EXPECT_EQ(resolved.value().strategy, Strategy::hybrid);
  EXPECT_EQ(resolved.value().inner.width, 32);
  EXPECT_EQ(resolved.tree.find("sharded")->origin.text(), "preset sharded");
  EXPECT_EQ(resolved.tree.find("strategy")->origin.text(), "test.yaml:1");
  EXPECT_EQ(resolved.tree.find("timeout")->origin.text(), "default");
}

TEST(Presets, AreTheShortFormOfASection) {
  EXPECT_EQ(resolve_text("inner: wide").value().inner.width, 64);
  EXPECT_EQ(resolve_text("inner: {preset: wide}").value().inner.width, 64);
  EXPECT_EQ(resolve_text("inner: {pause: 2s}", {"inner=wide"}).value().inner,
            (Inner{.width = 64, .pause = seconds(2)}));
  EXPECT_EQ(resolve_text("inner: wide", {"inner.pause=2s"}).value().inner,
            (Inner{.width = 64, .pause = seconds(2)}));
  EXPECT_EQ(resolve_text("inner: {preset: null}").value().inner.width, 16);
  EXPECT_EQ(error_of("inner: wid"),
            "test.yaml:1:8: inner: found 'wid'; expected a section with fields, or wide; did you "
            "mean 'wide'?");
  EXPECT_EQ(
      error_of("inner: {preset: wid}"),
      "test.yaml:1:17: inner.preset: unknown preset 'wid'; did you mean 'wide'? There are: wide");
  EXPECT_EQ(error_of("inner: {name: wide}"),
            "test.yaml:1:9: inner.name: unknown key in the section 'inner'; there are: pause, "
            "width");
}

TEST(FormerNames, WorkWithAWarning) {
  const Resolved resolved = resolve_text("{timeout_seconds: 30, is_sharded: true}");
  EXPECT_EQ(resolved.value().timeout, seconds(30));
  EXPECT_TRUE(resolved.value().sharded);
  EXPECT_THAT(resolved.warnings,
              ElementsAre("timeout_seconds: this is called 'timeout' now; write timeout: 30s",
                          "is_sharded: this is called 'sharded' now"));
  EXPECT_EQ(resolve_text("{}\n", {"timeout_seconds=30"}).value().timeout, seconds(30));
  EXPECT_EQ(error_of("{timeout: 3s, timeout_seconds: 3}"),
            "test.yaml:1:15: timeout_seconds: this is the former name of 'timeout', which is given "
            "as well; remove one of the two");
}

TEST(Ineffective, WarnsOfWhatSomebodyHasSet) {
  EXPECT_THAT(resolve_text("{strategy: FULL, inner: {pause: 2s}}").warnings,
              ElementsAre("strategy: this has no effect: sharded is false",
                          "inner.pause: this has no effect: sharded is false"));
  EXPECT_THAT(resolve_text("{strategy: FULL, sharded: true}").warnings, ElementsAre());
  // A default that is written out says nothing in a resolved config, which does so everywhere.
  const std::string whole = print(write(Everything()));
  EXPECT_THAT(resolve_text(whole).warnings, ElementsAre());
  EXPECT_THAT(resolve_text(whole, {"steps=7"}).warnings, ElementsAre());
}

TEST(Ineffective, WarnsOfADefaultThatSomebodyHasChosen) {
  const auto warned = ElementsAre("strategy: this has no effect: sharded is false");
  EXPECT_THAT(resolve_text("strategy: HYBRID").warnings, warned);
  EXPECT_THAT(resolve_text("{strategy: HYBRID, inner: {width: 16}}").warnings, warned);
  EXPECT_THAT(resolve_text("{}", {"strategy=HYBRID"}).warnings, warned);
  EXPECT_THAT(resolve_text(print(write(Everything())), {"strategy=HYBRID"}).warnings, warned);
  EXPECT_THAT(resolve_text("{strategy: HYBRID, sharded: true}").warnings, ElementsAre());
  // A run's own config may lack fields that came later.
  EXPECT_THAT(resolve_text(std::string(kWholeConfig) + "\nstrategy: HYBRID\n").warnings,
              ElementsAre());
}

/// A type of somebody's own, written as text.
struct Ratio {
  int percent = 0;
  bool operator==(const Ratio&) const = default;
};

}  // namespace

template <>
struct Binding<Ratio> {
  static Type type() {
    Type type;
    type.own_text = "a ratio (5%)";
    type.canonical = [](const std::string& text) -> Parsed<std::string> {
      const auto number = parse_integer(text.substr(0, text.find('%'))).value;
      if (number && text.ends_with('%')) return {std::to_string(*number) + "%", ""};
      return {std::nullopt, "'" + text + "' is not a ratio"};
    };
    return type;
  }
  static void from_node(Ratio& value, const Type&, const Node& node) {
    value.percent = std::stoi(detail::to_text(node));
  }
  static Node to_node(const Ratio& value, const Type&) {
    return Node::string(std::to_string(value.percent) + "%");
  }
};

namespace {

struct Shares {
  Ratio share{5};
  std::vector<Ratio> others;

  bool operator==(const Shares&) const = default;
  static void describe(Schema<Shares>& s) {
    s.field("share", &Shares::share, "of the whole");
    s.field("others", &Shares::others, "of it");
  }
};

TEST(OwnTypes, SayHowTheyAreWritten) {
  Diagnostics diagnostics;
  const Node good =
      resolve(declaration<Shares>(),
              parse_yaml("{share: +07%, others: [1%, 2%]}", "test.yaml", diagnostics), diagnostics);
  // +07 is refused as any integer with a leading zero is.
  EXPECT_EQ(diagnostics.text(),
            "test.yaml:1:9: share: '+07%' is not a ratio; expected a ratio (5%)\n"
            "    1 | {share: +07%, others: [1%, 2%]}\n      |         ^\n");
  Diagnostics none;
  const Node read_back = resolve(
      declaration<Shares>(), parse_yaml("{share: +7%, others: [1%, 2%]}", "test.yaml", none), none);
  none.throw_if_any();
  EXPECT_EQ(read<Shares>(read_back), (Shares{.share = {7}, .others = {{1}, {2}}}));
  EXPECT_EQ(print_inline(read_back), "{share: \"7%\", others: [\"1%\", \"2%\"]}");
}

struct WrongPreset {
  std::int64_t width = 1;
  static void describe(Schema<WrongPreset>& s) {
    s.field("width", &WrongPreset::width, "").at_least(1);
    s.preset("none", "", [](WrongPreset& w) { w.width = 0; });
  }
};

struct TakenName {
  std::int64_t width = 1;
  std::int64_t size = 1;
  static void describe(Schema<TakenName>& s) {
    s.field("width", &TakenName::width, "").deprecated("size");
    s.field("size", &TakenName::size, "");
  }
};

struct WrongRule {
  std::int64_t width = 1;
  static void describe(Schema<WrongRule>& s) {
    s.field("width", &WrongRule::width, "");
    s.ineffective({"widht"}, "it is late", [](const WrongRule&) { return true; });
  }
};

std::string wrong_declaration(const Declaration& (*declare)()) {
  try {
    declare();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

TEST(Declaration, RefusesWhatCannotBeMeant) {
  EXPECT_THAT(wrong_declaration(declaration<WrongPreset>),
              HasSubstr("the preset 'none' sets width: '0' is out of range"));
  EXPECT_THAT(wrong_declaration(declaration<TakenName>),
              HasSubstr("width cannot have had the name 'size', which another field has"));
  EXPECT_THAT(wrong_declaration(declaration<WrongRule>),
              HasSubstr("has no 'widht', which is said to have no effect when it is late"));
}

TEST(Fields, SayAllThatIsDeclared) {
  std::map<std::string, std::string> facts;
  for (const FieldEntry& field : field_entries(declaration<Everything>())) {
    facts[field.path] = field.facts();
  }
  EXPECT_EQ(facts["timeout"],
            "a duration (90s, 5m, 1h30m) > 1s; default 5m; formerly timeout_seconds");
  EXPECT_EQ(facts["strategy"], "one of FULL (1), HYBRID (4); default HYBRID");
  EXPECT_EQ(facts["weights"], "a map of names to real numbers >= 0; default {a: 0.5}");
  EXPECT_EQ(facts["parts"], "a map of names to sections; default {}");
  EXPECT_EQ(facts["parts.NAME.width"], "an integer >= 1; default 8");
  EXPECT_EQ(facts["inner.width"], "an integer >= 1; default 16");
}

}  // namespace
}  // namespace phalanx::config
