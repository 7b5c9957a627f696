// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/schema.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <stdexcept>

#include "tests/trainer/config/example.h"

namespace phalanx::config {
namespace {

struct Empty {
  static void describe(Schema<Empty>&) {}
};
struct FirstIsOptional {
  std::optional<int> a;
  double b = 0;
};
struct Difficult {
  std::optional<std::string> text;
  std::optional<FirstIsOptional> nested;
  std::optional<std::vector<std::optional<double>>> list;
  std::string b;
  std::function<void()> function;
  std::map<std::string, int> map;
  std::filesystem::path path;
  std::vector<bool> flags;
  FirstIsOptional plain;
  Empty empty;
  std::optional<std::filesystem::path> last;
};

static_assert(member_count<Empty>() == 0);
static_assert(member_count<FirstIsOptional>() == 2);
static_assert(member_count<Difficult>() == 11);
static_assert(member_count<LoaderConfig>() == 2);
static_assert(member_count<AdamWConfig>() == 9);

std::string logic_error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "no error";
}

struct LeavesOneOut {
  int a = 0;
  double b = 0;
  static void describe(Schema<LeavesOneOut>& s) { s.field("b", &LeavesOneOut::b, ""); }
};
struct DescribesOneTwice {
  double a = 0;
  double b = 0;
  static void describe(Schema<DescribesOneTwice>& s) {
    s.field("a", &DescribesOneTwice::a, "");
    s.field("b", &DescribesOneTwice::a, "");
  }
};
struct NamesTwice {
  double a = 0;
  double b = 0;
  static void describe(Schema<NamesTwice>& s) {
    s.field("a", &NamesTwice::a, "");
    s.field("a", &NamesTwice::b, "");
  }
};
struct HasNoChoices {
  Clip clip = Clip::norm;
  static void describe(Schema<HasNoChoices>& s) { s.field("clip", &HasNoChoices::clip, ""); }
};
struct HasWrongDefault {
  double lr = -1;
  static void describe(Schema<HasWrongDefault>& s) {
    s.field("lr", &HasWrongDefault::lr, "").at_least(0);
  }
};
struct HasUnnamedDefault {
  Clip clip = Clip::value;
  static void describe(Schema<HasUnnamedDefault>& s) {
    s.field("clip", &HasUnnamedDefault::clip, "").choices({{"norm", Clip::norm}});
  }
};
struct HasDottedName {
  double lr = 0;
  static void describe(Schema<HasDottedName>& s) { s.field("a.b", &HasDottedName::lr, ""); }
};

TEST(Declaration, ReportsAMemberThatIsLeftOut) {
  const std::string error = logic_error_of([] { declaration<LeavesOneOut>(); });
  EXPECT_NE(error.find("LeavesOneOut has 2 members, but describe declares 1 fields: b"),
            std::string::npos)
      << error;
}

TEST(Declaration, ReportsOtherSlips) {
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos ? std::string() : text;
  };
  EXPECT_EQ(has(logic_error_of([] { declaration<DescribesOneTwice>(); }),
                "DescribesOneTwice.b describes a member that has another field already"),
            "");
  EXPECT_EQ(has(logic_error_of([] { declaration<NamesTwice>(); }), "'a' is declared twice"), "");
  EXPECT_EQ(has(logic_error_of([] { declaration<HasNoChoices>(); }),
                "HasNoChoices.clip is an enum without choices"),
            "");
  EXPECT_EQ(has(logic_error_of([] { declaration<HasWrongDefault>(); }),
                "HasWrongDefault.lr: '-1.0' is out of range; expected a real number >= 0"),
            "");
  EXPECT_EQ(has(logic_error_of([] { declaration<HasUnnamedDefault>(); }), "has no name"), "");
  EXPECT_EQ(has(logic_error_of([] { declaration<HasDottedName>(); }), "'a.b' is no name"), "");
}

TEST(Declaration, TellsWhatIsDeclared) {
  const Declaration& adamw = declaration<AdamWConfig>();
  EXPECT_EQ(adamw.field_names(),
            (std::vector<std::string>{"lr", "betas", "warmup_steps", "loader", "kind", "file",
                                      "groups", "extra", "limit"}));
  EXPECT_EQ(adamw.find("lr")->type.text(), "a real number >= 0");
  EXPECT_EQ(adamw.find("betas")->type.text(), "a list of 2 real numbers in [0, 1]");
  EXPECT_EQ(adamw.find("warmup_steps")->type.text(), "an integer >= 0, or null");
  EXPECT_EQ(adamw.find("warmup_steps")->unit, "steps");
  EXPECT_EQ(adamw.find("kind")->type.text(), "one of norm, value");
  EXPECT_EQ(adamw.find("kind")->default_value.text, "norm");
  EXPECT_EQ(adamw.find("loader")->default_value.find("workers")->text, "4");
  EXPECT_EQ(adamw.find("limit")->type.text(), "a real number > 0, or null");
  EXPECT_TRUE(adamw.find("file")->mandatory);
  EXPECT_TRUE(adamw.find("file")->default_value.is_missing());
  EXPECT_TRUE(adamw.find("lr")->resume_may_change);
  EXPECT_FALSE(adamw.find("betas")->resume_may_change);
  EXPECT_EQ(adamw.find("nothing"), nullptr);
}

TEST(Range, PrintsOpenAndClosedBounds) {
  EXPECT_EQ((Range{.low = 0.0, .high = 1.0, .high_excluded = true}.text()), "in [0, 1)");
  EXPECT_EQ((Range{.low = 0.0, .low_excluded = true}.text()), "> 0");
  EXPECT_EQ((Range{.high = 0.5, .high_excluded = true}.text()), "< 0.5");
  EXPECT_EQ((Range{.high = 1e-8}.text()), "<= 1e-08");
  EXPECT_TRUE((Range{.low = 0.0, .high = 1.0}.contains(1)));
  EXPECT_FALSE((Range{.low = 0.0, .high = 1.0, .high_excluded = true}.contains(1)));
  EXPECT_FALSE((Range{.low = 0.0, .low_excluded = true}.contains(0)));
}

TEST(ReadAndWrite, AreInverse) {
  AdamWConfig config;
  config.lr = 3e-4;
  config.betas = {0.1, 0.2};
  config.warmup_steps = 7;
  config.loader = {.workers = 9, .shuffle = false};
  config.kind = Clip::value;
  config.file = "a/b";
  config.groups = {{.workers = 1, .shuffle = true}, {.workers = 2, .shuffle = false}};
  config.extra = LoaderConfig{.workers = 3, .shuffle = true};
  const Node node = write(config);
  const AdamWConfig again = read<AdamWConfig>(node);
  EXPECT_EQ(again.lr, 3e-4);
  EXPECT_EQ(again.betas, config.betas);
  EXPECT_EQ(again.warmup_steps, 7);
  EXPECT_EQ(again.loader.workers, 9);
  EXPECT_EQ(again.kind, Clip::value);
  EXPECT_EQ(again.file, "a/b");
  ASSERT_EQ(again.groups.size(), 2u);
  EXPECT_FALSE(again.groups[1].shuffle);
  EXPECT_EQ(again.extra.value().workers, 3);
  EXPECT_EQ(again.limit, std::nullopt);
  EXPECT_TRUE(same_value(write(again), node));
}

TEST(Read, RefusesAnUnresolvedTree) {
  EXPECT_THROW(read<LoaderConfig>(Node::map()), std::logic_error);
  EXPECT_THROW(read<LoaderConfig>(Node::plain("x")), std::logic_error);
  Node unresolved = Node::map();
  unresolved.set("workers", Node::plain("3"));
  unresolved.set("shuffle", Node::plain("true"));
  EXPECT_THROW(read<LoaderConfig>(unresolved), std::logic_error);
}

TEST(ResumeMayChange, FollowsSectionsAndChoices) {
  const Declaration top = example();
  const Node resolved = resolve_example("optimizer: {name: adamw, file: x}");
  EXPECT_TRUE(top.resume_may_change("optimizer.lr", resolved));
  EXPECT_TRUE(top.resume_may_change("optimizer.loader.workers", resolved));
  EXPECT_TRUE(top.resume_may_change("loader.workers", resolved));
  EXPECT_FALSE(top.resume_may_change("loader.shuffle", resolved));
  EXPECT_FALSE(top.resume_may_change("loader", resolved));
  EXPECT_FALSE(top.resume_may_change("optimizer.name", resolved));
  EXPECT_FALSE(top.resume_may_change("optimizer.betas", resolved));
  EXPECT_FALSE(top.resume_may_change("nothing.here", resolved));
  // sgd's lr is its own field, which does not say so.
  EXPECT_FALSE(top.resume_may_change("optimizer.lr", resolve_example("optimizer: sgd")));
}

}  // namespace
}  // namespace phalanx::config
