// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/resolve.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/trainer/config/example.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/merge.h"
#include "trainer/config/syntax/print.h"

namespace phalanx::config {
namespace {

/// The value at a path of the resolved example.
std::string value(const std::string& yaml, const std::string& path,
                  const std::vector<std::string>& overrides = {}) {
  const Node resolved = resolve_example(yaml, overrides);
  const Node* node = resolved.find_path(path);
  return node == nullptr ? "(absent)" : print_inline(*node, {.escape_interpolation = false});
}

TEST(Resolve, FillsDefaultsInDeclaredOrder) {
  const Node resolved = resolve_example("optimizer: {file: x, name: adamw}\nlevel: warning\n");
  EXPECT_EQ(print(resolved),
            "title: \"run of nobody\"\n"
            "level: warning\n"
            "loader:\n"
            "  workers: 2\n"
            "  shuffle: true\n"
            "optimizer:\n"
            "  name: adamw\n"
            "  lr: 0.001\n"
            "  betas: [0.9, 0.999]\n"
            "  warmup_steps: null\n"
            "  loader:\n"
            "    workers: 4\n"
            "    shuffle: true\n"
            "  kind: norm\n"
            "  file: x\n"
            "  groups: []\n"
            "  extra: null\n"
            "  limit: null\n");
}

TEST(Resolve, KeepsTheDefaultsThatAnOuterStructGivesAnInnerOne) {
  EXPECT_EQ(
      value("optimizer: {name: adamw, file: x, loader: {shuffle: false}}", "optimizer.loader"),
      "{workers: 4, shuffle: false}");
  EXPECT_EQ(value("optimizer: {name: adamw, file: x, loader:}", "optimizer.loader.workers"), "4");
}

TEST(Resolve, ReadsStructs) {
  const Node resolved = resolve_example(
      "optimizer: {name: adamw, file: ab/c, lr: 1, kind: value, warmup_steps: 0x10,"
      " groups: [{workers: 1}, {}], extra: {shuffle: false}, limit: 1.5e308}");
  const auto adamw = read<AdamWConfig>(*resolved.find("optimizer"));
  EXPECT_EQ(adamw.lr, 1.0);
  EXPECT_EQ(adamw.kind, Clip::value);
  EXPECT_EQ(adamw.warmup_steps, 16);
  EXPECT_EQ(adamw.file, "ab/c");
  ASSERT_EQ(adamw.groups.size(), 2u);
  EXPECT_EQ(adamw.groups[0].workers, 1);
  EXPECT_EQ(adamw.groups[1].workers, 2);
  EXPECT_FALSE(adamw.extra.value().shuffle);
  EXPECT_GT(adamw.limit.value(), 1e308);
  EXPECT_EQ(read<BaseConfig>(resolved).level, Level::info);
  EXPECT_EQ(read<LoaderConfig>(*resolved.find("loader")).workers, 2);
}

TEST(Resolve, TakesNumbersForTextsAsWritten) {
  EXPECT_EQ(value("{optimizer: sgd, title: 1.10}", "title"), "\"1.10\"");
  EXPECT_EQ(value("{optimizer: sgd, title: yes}", "title"), "\"yes\"");
}

TEST(Resolve, ChoosesAClassByNameOrShortForm) {
  EXPECT_EQ(value("optimizer: sgd", "optimizer"), "{name: sgd, lr: 0.1}");
  EXPECT_EQ(value("optimizer: {name: sgd, lr: 2}", "optimizer"), "{name: sgd, lr: 2.0}");
  EXPECT_EQ(value("optimizer: adamw", "optimizer.file", {"optimizer.file=f"}), "f");
  EXPECT_EQ(value("optimizer: {name: sgd, lr: 2}", "optimizer.lr", {"optimizer=sgd"}), "2.0");
}

TEST(Resolve, ChoiceMayHaveADefault) {
  Declaration top;
  Choice choice = *example().find("optimizer")->type.choice;
  choice.default_name = "sgd";
  top.add_choice("with_default", choice);
  Diagnostics diagnostics;
  EXPECT_EQ(print_inline(resolve(top, Node::map(), diagnostics)),
            "{with_default: {name: sgd, lr: 0.1}}");
  Node tree = Node::map();
  assign(tree, "with_default.lr", Node::plain("3"));
  EXPECT_EQ(print_inline(resolve(top, tree, diagnostics)), "{with_default: {name: sgd, lr: 3.0}}");
  EXPECT_TRUE(diagnostics.empty()) << diagnostics.text();
}

TEST(Resolve, LeavesToLaterWhatTheProgramFillsIn) {
  const Node resolved =
      resolve_example("optimizer: adamw", {}, {.filled_later = {"optimizer.file"}});
  EXPECT_TRUE(resolved.find_path("optimizer.file")->is_missing());
  EXPECT_TRUE(read<AdamWConfig>(*resolved.find("optimizer")).file.empty());
}

TEST(Resolve, ResolvingAResolvedTreeChangesNothing) {
  const Node once = resolve_example("{optimizer: {name: adamw, file: '\\${x}'}}");
  EXPECT_EQ(once.find_path("optimizer.file")->text, "${x}");
  const Node twice = resolve_example(print(once));
  EXPECT_TRUE(same_value(once, twice)) << print(twice);
}

TEST(Interpolation, KeepsTypesAlone) {
  EXPECT_EQ(value("{loader: {workers: 7}, optimizer: {name: adamw, file: x,"
                  " warmup_steps: ${loader.workers}, betas: [${optimizer.lr}, 1]}}",
                  "optimizer.warmup_steps"),
            "7");
  EXPECT_EQ(value("{optimizer: {name: adamw, file: x, extra: ${loader}}}", "optimizer.extra"),
            "{workers: 2, shuffle: true}");
  EXPECT_EQ(
      value("{optimizer: {name: adamw, file: x, betas: [${optimizer.lr}, 1]}}", "optimizer.betas"),
      "[0.001, 1.0]");
}

TEST(Interpolation, IsInsertedWithinText) {
  EXPECT_EQ(value("{title: 'a-${level}-${loader.workers}', optimizer: sgd}", "title"), "a-info-2");
  EXPECT_EQ(value("{title: ${level}, optimizer: {name: adamw, file: '${title}/${level}'}}",
                  "optimizer.file"),
            "info/info");
  EXPECT_EQ(value("{title: '\\${level} \\\\${level}', optimizer: sgd}", "title"),
            "\"${level} \\\\info\"");
}

TEST(Interpolation, ReadsTheEnvironment) {
  setenv("PHALANX_TEST_USER", "ada", 1);
  EXPECT_EQ(value("optimizer: sgd", "title"), "\"run of ada\"");
  setenv("PHALANX_TEST_USER", "3", 1);
  EXPECT_EQ(
      value("{optimizer: sgd, loader: {workers: '${oc.env:PHALANX_TEST_USER}'}}", "loader.workers"),
      "3");
  unsetenv("PHALANX_TEST_USER");
  EXPECT_EQ(value("optimizer: ${oc.env:PHALANX_TEST_USER,sgd}", "optimizer.name"), "sgd");
  EXPECT_EQ(value("{optimizer: sgd, title: '${oc.env:PHALANX_TEST_USER, ${level}}'}", "title"),
            "info");
  EXPECT_EQ(value("{optimizer: {name: adamw, file: x,"
                  " warmup_steps: ${oc.env:PHALANX_TEST_USER,null}}}",
                  "optimizer.warmup_steps"),
            "null");
}

TEST(Interpolation, MayNest) {
  setenv("PHALANX_TEST_USER", "workers", 1);
  EXPECT_EQ(value("{title: '${loader.${oc.env:PHALANX_TEST_USER}}', optimizer: sgd}", "title"),
            "\"2\"");
  unsetenv("PHALANX_TEST_USER");
}

TEST(Interpolation, KeepsItsOwnOrigin) {
  const Node resolved = resolve_example("optimizer: {name: adamw, file: x,\n  extra: ${loader}}");
  EXPECT_EQ(resolved.find_path("optimizer.extra.workers")->origin.line, 2);
  EXPECT_EQ(resolved.find_path("loader.workers")->origin.text(), "default");
}

TEST(Interpolation, BoundsWhatItInserts) {
  // Each level doubles the text: 2^40 letters if nothing stopped it.
  std::string yaml = "optimizer: {name: '${l0}'}\nl40: xx\n";
  for (int i = 0; i < 40; ++i) {
    const std::string next = "${l" + std::to_string(i + 1) + "}";
    yaml += "l" + std::to_string(i) + ": '" + next + next + "'\n";
  }
  try {
    resolve_example(yaml);
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("interpolations insert more than 1 MiB"),
              std::string::npos)
        << error.what();
  }
}

TEST(Interpolation, BoundsItsChains) {
  std::string yaml = "optimizer: {name: '${l0}'}\nl150: sgd\n";
  for (int i = 0; i < 150; ++i) {
    yaml += "l" + std::to_string(i) + ": ${l" + std::to_string(i + 1) + "}\n";
  }
  try {
    resolve_example(yaml);
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("in too long a chain"), std::string::npos);
  }
}

TEST(Resolve, AnUnknownClassHidesNoMistakeElsewhere) {
  try {
    resolve_example("optimizer: {name: adamm, lrr: 1}\nloader: {wrkers: 2, shuffle: maybe}\n");
    ADD_FAILURE() << "nothing was found";
  } catch (const UserError& error) {
    const std::string text = error.what();
    const std::size_t name =
        text.find("unknown optimizer 'adamm'; did you mean 'adamw'? There are: adamw, sgd");
    const std::size_t key = text.find("loader.wrkers: unknown key");
    EXPECT_LT(name, key) << text;
    EXPECT_NE(key, std::string::npos) << text;
    EXPECT_NE(text.find("loader.shuffle: "), std::string::npos) << text;
    EXPECT_EQ(text.find("optimizer.lrr"), std::string::npos)
        << "whose field it is nobody knows: " << text;
  }
}

}  // namespace
}  // namespace phalanx::config
