// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/trainer/config/properties.h"
#include "tests/trainer/config/random_config.h"
#include "trainer/config/syntax/merge.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/array.h"
#include "trainer/config/tree/schema.h"

/// Properties of a declaration with every type there is, in every position.
namespace phalanx::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

enum class Level { low = -1, middle = 3, high = 7 };

struct Part {
  std::int64_t width = 8;
  std::optional<milliseconds> pause;
  std::string label = "a part";

  static void describe(Schema<Part>& s) {
    s.field("width", &Part::width, "of it").at_least(1).count();
    s.field("pause", &Part::pause, "between").greater_than(milliseconds(999));
    s.field("label", &Part::label, "what it is called");
    s.preset("wide", "wider", [](Part& part) { part.width = 64; });
    s.preset("slow", "with pauses", [](Part& part) {
      part.pause = seconds(90);
      part.label = "slow: #1";
    });
  }
};

struct Numbers {
  std::int64_t small = 1;
  std::int64_t large = -5;
  std::int64_t count = 100'000;
  double free = 1e-4;
  double share = 0.5;
  std::optional<double> bound;
  milliseconds time = seconds(5);
  milliseconds bounded = hours(1);
  std::optional<std::int64_t> workers;

  static void describe(Schema<Numbers>& s) {
    s.field("small", &Numbers::small, "any that fits");
    s.field("large", &Numbers::large, "of 64 bits").at_most(1000);
    s.field("count", &Numbers::count, "may be in thousands").count().at_least(0);
    s.field("free", &Numbers::free, "any");
    s.field("share", &Numbers::share, "of a whole").greater_than(0).less_than(1);
    s.field("bound", &Numbers::bound, "may be none").greater_than(0);
    s.field("time", &Numbers::time, "how long");
    s.field("bounded", &Numbers::bounded, "how long").greater_than(seconds(0));
    s.field("workers", &Numbers::workers, "how many").null_is("auto").at_least(1);
    s.check([](const Numbers& n) -> std::optional<std::string> {
      if (n.small != 13) return std::nullopt;
      return "13 brings bad luck";
    });
  }
};

struct Texts {
  bool flag = true;
  std::string text = "yes";
  std::filesystem::path path = "/data/${not filled in}";
  std::optional<std::string> title;
  Level level = Level::middle;
  Level numbered = Level::low;
  std::optional<Level> none;

  static void describe(Schema<Texts>& s) {
    const auto levels = {
        std::pair{"low", Level::low}, {"middle", Level::middle}, {"high", Level::high}};
    s.field("flag", &Texts::flag, "true or false");
    s.field("text", &Texts::text, "any");
    s.field("path", &Texts::path, "a path").mandatory();
    s.field("title", &Texts::title, "may be none");
    s.field("level", &Texts::level, "by name").choices(levels);
    s.field("numbered", &Texts::numbered, "by name or number").choices(levels).numbered();
    s.field("none", &Texts::none, "may be none").choices(levels);
  }
};

struct Containers {
  std::array<double, 2> pair = {0.9, 0.999};
  std::vector<std::string> texts = {"a", "b: c"};
  std::vector<std::vector<std::int64_t>> table;
  std::vector<std::optional<bool>> flags;
  std::optional<std::vector<milliseconds>> times;
  std::map<std::string, double> weights = {{"a", 0.5}};
  std::map<std::string, std::vector<std::string>> lists;
  std::map<std::string, Part> parts = {{"first", {}}};
  std::vector<Part> row = {{.width = 2, .pause = {}, .label = "two"}};
  std::optional<Part> spare;
  Part inner{.width = 16, .pause = seconds(2), .label = ""};

  static void describe(Schema<Containers>& s) {
    s.field("pair", &Containers::pair, "two").in_range(0, 1);
    s.field("texts", &Containers::texts, "several");
    s.field("table", &Containers::table, "rows");
    s.field("flags", &Containers::flags, "or none");
    s.field("times", &Containers::times, "may be none");
    s.field("weights", &Containers::weights, "by name").at_least(0);
    s.field("lists", &Containers::lists, "by name");
    s.field("parts", &Containers::parts, "by name");
    s.field("row", &Containers::row, "one after the other");
    s.field("spare", &Containers::spare, "may be none");
    s.field("inner", &Containers::inner, "with defaults of its own");
    s.preset("bare", "without anything", [](Containers& c) {
      c.texts.clear();
      c.weights.clear();
      c.inner.width = 1;
    });
  }
};

struct Nothing {
  static void describe(Schema<Nothing>&) {}
};

/// A section that picks one of these classes.
Choice choice(const std::string& kind, std::map<std::string, const Declaration*> classes) {
  Choice choice;
  choice.kind = kind;
  choice.meaning = "one of the " + kind + "s";
  for (const auto& [name, declaration] : classes) {
    choice.names = [names = choice.names ? choice.names() : std::vector<std::string>(),
                    name = name] {
      std::vector<std::string> all = names;
      all.push_back(name);
      return all;
    };
  }
  choice.find = [classes](std::string_view name) {
    const auto found = classes.find(std::string(name));
    return found == classes.end() ? nullptr : found->second;
  };
  return choice;
}

/// Sections and choices of every form, with every type in them.
const Declaration& everything() {
  static const Declaration whole = [] {
    Declaration whole("Everything");
    whole.add_section("numbers", declaration<Numbers>(), "numbers");
    whole.add_section("texts", declaration<Texts>(), "texts");
    whole.add_choice("must", choice("tool", {{"part", &declaration<Part>()},
                                             {"numbers", &declaration<Numbers>()},
                                             {"nothing", &declaration<Nothing>()}}));
    Choice by_default = choice(
        "vessel", {{"containers", &declaration<Containers>()}, {"texts", &declaration<Texts>()}});
    by_default.default_name = "containers";
    whole.add_choice("by_default", by_default);
    return whole;
  }();
  return whole;
}

/// Calls `check` for many configs, each with the generator that drew it.
void for_random_configs(const std::function<void(RandomConfig&, const Node&)>& check) {
  constexpr std::uint32_t kConfigs = 300;
  for (std::uint32_t seed = 0; seed < kConfigs; ++seed) {
    SCOPED_TRACE(seed);
    RandomConfig random(seed);
    const Node written = random.draw(everything());
    ASSERT_NO_THROW(check(random, written)) << print(written);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(EveryConfig, HoldsTheTextsThatWereWritten) {
  for_random_configs(
      [](RandomConfig&, const Node& written) { expect_texts_as_written(everything(), written); });
}

TEST(EveryConfig, ReadsBackAsItIsPrinted) {
  for_random_configs([](RandomConfig&, const Node& written) {
    expect_print_reads_back(everything(), resolve_written(everything(), written));
  });
}

TEST(EveryConfig, ReadsBackFromWhatDiffersFromTheDefaults) {
  for_random_configs([](RandomConfig&, const Node& written) {
    expect_minimal_suffices(everything(), resolve_written(everything(), written));
  });
}

TEST(EveryConfig, IsTheSameInJson) {
  for_random_configs([](RandomConfig&, const Node& written) {
    expect_json_holds_the_same(resolve_written(everything(), written));
  });
}

TEST(EveryConfig, KnowsWhereEachValueWasWritten) {
  for_random_configs([](RandomConfig& random, const Node& written) {
    expect_origins(random, everything(), written);
  });
}

TEST(Merging, IsAssociativeForLayersWithoutNulls) {
  for_random_configs([](RandomConfig& random, const Node&) {
    expect_merging_is_associative(random, everything());
  });
}

/// Whether three layers give the same in either grouping.
bool is_associative(const std::string& a, const std::string& b, const std::string& c) {
  Diagnostics diagnostics;
  const auto merged = [](Node target, const Node& value) {
    merge(target, value);
    return target;
  };
  const Node x = parse_yaml(a, "a", diagnostics);
  const Node y = parse_yaml(b, "b", diagnostics);
  const Node z = parse_yaml(c, "c", diagnostics);
  return same_value(merged(merged(x, y), z), merged(x, merged(y, z)));
}

TEST(Merging, IsAssociativeForShortForms) {
  EXPECT_TRUE(is_associative("o: {name: sgd, lr: 1}", "o: adamw", "o: {wd: 1}"));
  EXPECT_TRUE(is_associative("o: sgd", "o: {lr: 1}", "o: adamw"));
  EXPECT_TRUE(is_associative("o: {lr: 1}", "o: {lr: 2}", "o: sgd"));
}

TEST(Merging, DependsOnTheGroupingWhereALayerReplacesASection) {
  // A null takes back what is below it, and is gone itself under what is laid over it.
  EXPECT_FALSE(is_associative("o: {lr: 1}", "o: null", "o: {wd: 1}"));
  // A list or an interpolation in the place of a section, and a section over it.
  EXPECT_FALSE(is_associative("o: {lr: 1}", "o: [1]", "o: {wd: 1}"));
  EXPECT_FALSE(is_associative("o: {lr: 1}", "o: '${p}'", "o: {wd: 1}"));
  // A number is no name of a class.
  EXPECT_FALSE(is_associative("o: {lr: 1}", "o: 3", "o: {wd: 1}"));
}

TEST(EveryField, IsToldOfEverywhere) { expect_told_everywhere("everything", everything()); }

}  // namespace
}  // namespace phalanx::config
