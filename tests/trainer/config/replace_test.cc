// SPDX-License-Identifier: Apache-2.0
// Which fields of a section stay when a later layer names its class.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/merge.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"

namespace phalanx::config {
namespace {

struct Inner {
  std::int64_t a = 1;
  std::int64_t b = 2;
  static void describe(Schema<Inner>& s) {
    s.field("a", &Inner::a, "");
    s.field("b", &Inner::b, "");
  }
};

struct Adamw {
  double lr = 0.001;
  double decay = 0.1;
  Inner inner;
  static void describe(Schema<Adamw>& s) {
    s.field("lr", &Adamw::lr, "");
    s.field("decay", &Adamw::decay, "");
    s.field("inner", &Adamw::inner, "");
    s.preset("careful", "", [](Adamw& c) { c.lr = 0.0001; });
    s.preset("usual", "", [](Adamw&) {});
    s.preset("nested", "", [](Adamw& c) { c.inner.a = 7; });
  }
};

struct Sgd {
  double lr = 0.1;
  double momentum = 0;
  Inner inner;
  static void describe(Schema<Sgd>& s) {
    s.field("lr", &Sgd::lr, "");
    s.field("momentum", &Sgd::momentum, "");
    s.field("inner", &Sgd::inner, "");
    s.preset("heavy", "", [](Sgd& c) { c.momentum = 0.9; });
  }
};

struct Plain {
  std::string name = "x";
  std::int64_t size = 1;
  static void describe(Schema<Plain>& s) {
    s.field("name", &Plain::name, "");
    s.field("size", &Plain::size, "");
  }
};

struct Way {
  bool is_sharded = false;
  std::int64_t size = 1;
  static void describe(Schema<Way>& s) {
    s.field("is_sharded", &Way::is_sharded, "");
    s.field("size", &Way::size, "");
    s.preset("whole", "", [](Way& way) { way.is_sharded = false; });
    s.preset("sharded", "", [](Way& way) { way.is_sharded = true; });
  }
};

const Declaration& top() {
  static const Declaration made = [] {
    Declaration top;
    Choice optimizer;
    optimizer.kind = "optimizer";
    optimizer.names = [] { return std::vector<std::string>{"adamw", "sgd"}; };
    optimizer.find = [](std::string_view name) -> const Declaration* {
      if (name == "adamw") return &declaration<Adamw>();
      return name == "sgd" ? &declaration<Sgd>() : nullptr;
    };
    top.add_choice("optimizer", optimizer);
    top.add_section("plain", declaration<Plain>(), "");
    top.add_section("way", declaration<Way>(), "");
    return top;
  }();
  return made;
}

struct Layers {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
};

// What a field of the resolved config is, or the first error; warnings go to `warnings`.
std::string value(const Layers& layers, const std::string& path, std::string* warnings = nullptr) {
  Diagnostics diagnostics;
  Node tree = Node::map();
  for (std::size_t i = 0; i < layers.files.size(); ++i) {
    const std::string name = std::string(1, static_cast<char>('a' + i)) + ".yaml";
    merge(tree, parse_yaml(layers.files[i], name, diagnostics));
  }
  for (const std::string& argument : layers.overrides) {
    apply_override(tree, argument, diagnostics);
  }
  const Node resolved = resolve(top(), tree, diagnostics);
  if (warnings != nullptr) {
    warnings->clear();
    for (const Diagnostic& warning : diagnostics.warnings()) *warnings += to_string(warning);
  }
  if (!diagnostics.empty()) return diagnostics.text();
  return print_inline(*resolved.find_path(path));
}

struct Case {
  const char* name;
  Layers layers;
  const char* optimizer;
};

const Case kCases[]{
    {"override by name",
     {{"optimizer: {name: adamw, lr: 3, decay: 1, inner: {a: 5}}"}, {"optimizer=sgd"}},
     "{name: sgd, lr: 0.1, momentum: 0.0, inner: {a: 1, b: 2}}"},
    {"later overrides stay",
     {{"optimizer: {name: adamw, lr: 3, inner: {a: 5}}"},
      {"optimizer=sgd", "optimizer.lr=7", "optimizer.inner.b=8"}},
     "{name: sgd, lr: 7.0, momentum: 0.0, inner: {a: 1, b: 8}}"},
    {"earlier overrides go",
     {{"optimizer: adamw"}, {"optimizer.lr=7", "optimizer=sgd"}},
     "{name: sgd, lr: 0.1, momentum: 0.0, inner: {a: 1, b: 2}}"},
    {"later file, short form",
     {{"optimizer: {name: adamw, lr: 3}", "optimizer: sgd"}, {}},
     "{name: sgd, lr: 0.1, momentum: 0.0, inner: {a: 1, b: 2}}"},
    {"later file, section",
     {{"optimizer: {name: adamw, lr: 3, decay: 1}", "optimizer: {momentum: 0.5, name: sgd}"}, {}},
     "{name: sgd, lr: 0.1, momentum: 0.5, inner: {a: 1, b: 2}}"},
    {"there and back",
     {{"optimizer: {name: adamw, lr: 3}"}, {"optimizer=sgd", "optimizer=adamw"}},
     "{name: adamw, lr: 0.001, decay: 0.1, inner: {a: 1, b: 2}}"},
    {"the same class merges",
     {{"optimizer: {name: adamw, lr: 3}"}, {"optimizer=adamw"}},
     "{name: adamw, lr: 3.0, decay: 0.1, inner: {a: 1, b: 2}}"},
    {"a section without a name merges",
     {{"optimizer: {name: adamw, lr: 3}", "optimizer: {decay: 1}"}, {}},
     "{name: adamw, lr: 3.0, decay: 1.0, inner: {a: 1, b: 2}}"},
    {"a name for a section without one keeps its fields",
     {{"optimizer: {lr: 3}"}, {"optimizer=sgd"}},
     "{name: sgd, lr: 3.0, momentum: 0.0, inner: {a: 1, b: 2}}"},
    {"a preset of the same class merges",
     {{"optimizer: {name: adamw, decay: 1}"}, {"optimizer=careful"}},
     "{name: adamw, lr: 1.0e-04, decay: 1.0, inner: {a: 1, b: 2}}"},
    {"a preset of another class replaces",
     {{"optimizer: {name: adamw, lr: 3}"}, {"optimizer=heavy"}},
     "{name: sgd, lr: 0.1, momentum: 0.9, inner: {a: 1, b: 2}}"},
    {"a preset's key of another class replaces",
     {{"optimizer: {name: adamw, lr: 3}", "optimizer: {preset: heavy}"}, {}},
     "{name: sgd, lr: 0.1, momentum: 0.9, inner: {a: 1, b: 2}}"},
    {"a class replaces another one's preset",
     {{"optimizer: {preset: careful, decay: 1}"}, {"optimizer=sgd"}},
     "{name: sgd, lr: 0.1, momentum: 0.0, inner: {a: 1, b: 2}}"},
    {"the name alone keeps what fits",
     {{"optimizer: {name: adamw, lr: 3, inner: {a: 5}}"}, {"optimizer.name=sgd"}},
     "{name: sgd, lr: 3.0, momentum: 0.0, inner: {a: 5, b: 2}}"},
    {"an interpolated name",
     {{"{optimizer: {name: adamw, lr: 3}, plain: {name: sgd}}"}, {"optimizer=${plain.name}"}},
     "{name: sgd, lr: 0.1, momentum: 0.0, inner: {a: 1, b: 2}}"},
};

TEST(Replace, KeepsNoFieldOfAnotherClass) {
  for (const Case& each : kCases) {
    EXPECT_EQ(value(each.layers, "optimizer"), each.optimizer) << each.name;
  }
}

TEST(Replace, NamesWhatTheUserLoses) {
  std::string warnings;
  value({{"optimizer: {name: adamw, lr: 3,\n  inner: {a: 5}}"},
         {"optimizer.decay=1", "optimizer=sgd"}},
        "optimizer", &warnings);
  EXPECT_THAT(warnings,
              ::testing::HasSubstr("optimizer 'sgd' replaces 'adamw' with all its fields; dropped: "
                                   "lr (a.yaml:1), inner.a (a.yaml:2), decay (command line)"));
  value({{"optimizer: adamw"}, {"optimizer=sgd"}}, "optimizer", &warnings);
  EXPECT_EQ(warnings, "") << "nothing is lost";
}

TEST(Replace, ANameOnTheCommandLineWithLeftoversSaysWhatDropsThem) {
  EXPECT_THAT(value({{"optimizer: {name: adamw, decay: 3}"}, {"optimizer.name=sgd"}}, "optimizer"),
              ::testing::HasSubstr("it belongs to adamw; optimizer=sgd drops it."));
}

const Case kPresets[]{
    {"a preset that keeps the default",
     {{"way: {is_sharded: true, size: 5}"}, {"way=whole"}},
     "{is_sharded: false, size: 5}"},
    {"by its key",
     {{"way: {is_sharded: true}"}, {"way.preset=whole"}},
     "{is_sharded: false, size: 1}"},
    {"in a later file",
     {{"way: {is_sharded: true}", "way: {preset: whole, size: 2}"}, {}},
     "{is_sharded: false, size: 2}"},
    {"in a later file, short",
     {{"way: {is_sharded: true}", "way: whole"}, {}},
     "{is_sharded: false, size: 1}"},
    {"over another preset",
     {{"way: {preset: sharded}"}, {"way=whole"}},
     "{is_sharded: false, size: 1}"},
    {"once more",
     {{"way: whole", "way: {is_sharded: true}", "way: whole"}, {}},
     "{is_sharded: false, size: 1}"},
    {"a field beside it",
     {{"way: {preset: whole, is_sharded: true}"}, {}},
     "{is_sharded: true, size: 1}"},
    {"a later field",
     {{"way: whole", "way: {is_sharded: true}"}, {}},
     "{is_sharded: true, size: 1}"},
    {"a later override",
     {{"way: whole"}, {"way=sharded", "way.is_sharded=false"}},
     "{is_sharded: false, size: 1}"},
    {"by interpolation",
     {{"{way: {is_sharded: true}, plain: {name: whole}}"}, {"way=${plain.name}"}},
     "{is_sharded: false, size: 1}"},
};

TEST(Replace, APresetCountsBeforeWhatWasSetEarlier) {
  for (Case each : kPresets) {
    each.layers.overrides.insert(each.layers.overrides.begin(), "optimizer=sgd");
    EXPECT_EQ(value(each.layers, "way"), each.optimizer) << each.name;
  }
}

TEST(Replace, APresetOfAClassCountsBeforeWhatWasSetEarlier) {
  EXPECT_EQ(value({{"optimizer: {name: adamw, lr: 3, decay: 1, inner: {a: 5, b: 6}}"},
                   {"optimizer=usual"}},
                  "optimizer"),
            "{name: adamw, lr: 0.001, decay: 1.0, inner: {a: 1, b: 6}}");
}

TEST(Replace, AnInterpolatedPresetCountsBeforeWhatWasSetEarlier) {
  EXPECT_EQ(value({{"{optimizer: sgd, way: {is_sharded: true, size: 5}, plain: {name: whole}}"},
                   {"way.preset=${plain.name}"}},
                  "way"),
            "{is_sharded: false, size: 5}");
  const std::string careful = "{name: adamw, lr: 1.0e-04, decay: 0.1, inner: {a: 1, b: 2}}";
  const std::string first = "{optimizer: {preset: usual, lr: 3}, plain: {name: careful}}";
  EXPECT_EQ(value({{first}, {"optimizer.preset=${plain.name}"}}, "optimizer"), careful);
  EXPECT_EQ(value({{first, "optimizer: {preset: \"${plain.name}\"}"}, {}}, "optimizer"), careful);
}

TEST(Replace, NamesWhatAPresetDrops) {
  std::string warnings;
  value({{"way: {is_sharded: true, size: 5}"}, {"way=whole"}}, "way", &warnings);
  EXPECT_THAT(warnings, ::testing::HasSubstr("way: the preset 'whole' replaces what was set before "
                                             "it; dropped: is_sharded (a.yaml:1)"));
  value({{"way: {is_sharded: false}"}, {"way=whole"}}, "way", &warnings);
  EXPECT_EQ(warnings, "") << "the same value";
}

TEST(Replace, AMistypedPresetIsComparedWithThoseOfAllClasses) {
  const std::string unknown =
      "optimizer.preset: unknown preset 'hevy'; did you mean 'heavy'? There are: heavy, ";
  for (const Layers& layers :
       {Layers{{"optimizer: {name: adamw, lr: 3}"}, {"optimizer.preset=hevy"}},
        Layers{{"optimizer: adamw", "optimizer: {preset: hevy}"}, {}},
        Layers{{"optimizer: {name: adamw, preset: hevy}"}, {}}}) {
    EXPECT_THAT(value(layers, "optimizer"), ::testing::HasSubstr(unknown));
  }
  EXPECT_THAT(value({{"optimizer: {name: adamw, preset: heavy}"}, {}}, "optimizer"),
              ::testing::HasSubstr("'heavy' is a preset of optimizer 'sgd', but the section names "
                                   "optimizer 'adamw'; leave out the name or the preset"));
}

TEST(Replace, LeavesPlainSectionsAlone) {
  const Layers layers{{"plain: {name: a, size: 5}", "plain: {name: b}"}, {}};
  EXPECT_EQ(value({{"optimizer: sgd", layers.files[0], layers.files[1]}, {}}, "plain"),
            "{name: b, size: 5}");
}

}  // namespace
}  // namespace phalanx::config
