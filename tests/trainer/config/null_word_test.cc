// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/text/differences.h"
#include "trainer/config/text/help.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"

namespace phalanx::config {
namespace {

enum class Speed { slow, fast };

struct AutoConfig {
  std::optional<std::int64_t> processes;
  std::optional<Speed> speed;
  std::optional<std::vector<double>> shares;
  std::optional<double> limit = 0.5;

  static void describe(Schema<AutoConfig>& s) {
    s.field("processes", &AutoConfig::processes, "how many").null_is("auto").at_least(1);
    s.field("speed", &AutoConfig::speed, "how fast")
        .choices({{"slow", Speed::slow}, {"fast", Speed::fast}})
        .null_is("auto");
    s.field("shares", &AutoConfig::shares, "of each").null_is("equal").in_range(0, 1);
    s.field("limit", &AutoConfig::limit, "a bound").null_is("none").unit("seconds");
  }
};

Node resolve_auto(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  Diagnostics diagnostics;
  Node tree = parse_yaml(yaml, "test.yaml", diagnostics);
  for (const std::string& argument : overrides) apply_override(tree, argument, diagnostics);
  Node resolved = resolve(declaration<AutoConfig>(), tree, diagnostics);
  diagnostics.throw_if_any();
  return resolved;
}

std::string error_of(const std::string& yaml) {
  try {
    resolve_auto(yaml);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST(NullWord, IsTheDefaultThatIsPrinted) {
  EXPECT_EQ(print(resolve_auto("{}")),
            "processes: auto\n"
            "speed: auto\n"
            "shares: equal\n"
            "limit: 0.5\n");
  EXPECT_EQ(to_json(resolve_auto("{limit: null}")),
            "{\"processes\": \"auto\", \"speed\": \"auto\", \"shares\": \"equal\", "
            "\"limit\": \"none\"}");
}

TEST(NullWord, IsReadAsNoValue) {
  for (const char* yaml : {"{processes: auto, limit: none}", "{processes: null, limit: ~}",
                           "{processes: 'auto', limit: \"none\"}"}) {
    const Node resolved = resolve_auto(yaml);
    EXPECT_EQ(print_inline(resolved), "{processes: auto, speed: auto, shares: equal, limit: none}");
    const auto config = read<AutoConfig>(resolved);
    EXPECT_EQ(config.processes, std::nullopt) << yaml;
    EXPECT_EQ(config.limit, std::nullopt) << yaml;
  }
}

TEST(NullWord, MayBeOverriddenEitherWay) {
  EXPECT_EQ(read<AutoConfig>(resolve_auto("{processes: 3}", {"processes=auto"})).processes,
            std::nullopt);
  EXPECT_EQ(read<AutoConfig>(resolve_auto("{processes: 3}", {"processes=null"})).processes,
            std::nullopt);
  const auto given = read<AutoConfig>(
      resolve_auto("{processes: auto, speed: fast}", {"processes=4", "shares=[0.5]"}));
  EXPECT_EQ(given.processes, 4);
  EXPECT_EQ(given.speed, Speed::fast);
  EXPECT_EQ(given.shares, std::vector<double>{0.5});
}

TEST(NullWord, StandsInHelpAndMessages) {
  EXPECT_EQ(help(field_entries(declaration<AutoConfig>())),
            "processes  (an integer >= 1, or auto; default auto)\n"
            "    how many\n"
            "speed  (one of slow, fast, or auto; default auto)\n"
            "    how fast\n"
            "shares  (a list of real numbers in [0, 1], or equal; default equal)\n"
            "    of each\n"
            "limit  (a real number, or none; in seconds; default 0.5)\n"
            "    a bound\n");
  const auto expect_part = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect_part(error_of("{processes: Auto}"), "expected an integer >= 1, or auto");
  expect_part(error_of("{processes: 0}"), "expected an integer >= 1, or auto");
  expect_part(error_of("{limit: auto}"), "expected a real number, or none");
}

TEST(NullWord, SurvivesTheRoundTripWithoutADifference) {
  const Node resolved = resolve_auto("{processes: auto, limit: null}");
  Diagnostics diagnostics;
  const Node printed = parse_yaml(print(resolved), "config.yaml", diagnostics);
  EXPECT_TRUE(differences(printed, resolved).empty());
  EXPECT_TRUE(same_value(resolve_auto(print(resolved)), resolved));
  EXPECT_TRUE(same_value(write(read<AutoConfig>(resolved)), resolved));
  const auto changed = differences(resolved, resolve_auto("{processes: 2, limit: null}"));
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].path, "processes");
  EXPECT_EQ(changed[0].a, "auto");
  EXPECT_EQ(changed[0].b, "2");
}

TEST(NullWord, KeepsWhereItWasWritten) {
  EXPECT_EQ(print(resolve_auto("processes: null\nspeed: auto\n"), {.with_origins = true}),
            "processes: auto  # test.yaml:1\n"
            "speed: auto  # test.yaml:2\n"
            "shares: equal\n"
            "limit: 0.5\n");
}

template <class Value>
struct Ambiguous {
  std::optional<Value> member;
  static void describe(Schema<Ambiguous>& s) { s.field("a", &Ambiguous::member, "").null_is("1"); }
};
struct NamedLikeAChoice {
  std::optional<Speed> member;
  static void describe(Schema<NamedLikeAChoice>& s) {
    s.field("a", &NamedLikeAChoice::member, "")
        .choices({{"slow", Speed::slow}, {"auto", Speed::fast}})
        .null_is("auto");
  }
};

TEST(NullWord, MustNotBeAValue) {
  EXPECT_THROW(declaration<Ambiguous<std::int64_t>>(), std::logic_error);
  EXPECT_THROW(declaration<Ambiguous<std::string>>(), std::logic_error);
  EXPECT_THROW(declaration<Ambiguous<AutoConfig>>(), std::logic_error);
  EXPECT_THROW(declaration<NamedLikeAChoice>(), std::logic_error);
  EXPECT_NO_THROW(declaration<Ambiguous<bool>>());
}

}  // namespace
}  // namespace phalanx::config
