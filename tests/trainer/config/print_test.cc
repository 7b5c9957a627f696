// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/print.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/trainer/config/example.h"
#include "trainer/config/syntax/parse.h"

namespace phalanx::config {
namespace {

TEST(Print, QuotesWhatYamlWouldMisread) {
  for (const char* text :
       {"",      "a b",  "yes",  "No", "null", "~",    "1",          "1.5", "1e3", "0x10", "010",
        "1_000", ".inf", "true", "-",  "- a",  "a: b", "a #b",       "#",   "'",   "\"",   "[a",
        "{",     "*a",   "&a",   "!a", "|",    ">",    "%",          "@",   "`",   "a\nb", "a\\n",
        "é",     "\x7F", "\x01", " a", "a ",   "1:30", "2026-01-01", "---", "???"}) {
    const std::string printed = print_inline(Node::string(text));
    EXPECT_TRUE(printed.front() == '"' || std::string(text) == "é") << printed;
    Diagnostics diagnostics;
    const Node back = parse_yaml("a: " + printed + "\n", "a.yaml", diagnostics);
    EXPECT_EQ(back.find("a")->text, text);
    EXPECT_TRUE(same_value(*back.find("a"), Node::string(text))) << printed;
  }
  EXPECT_EQ(print_inline(Node::string("configs/gpt2_124m.yaml")), "configs/gpt2_124m.yaml");
}

TEST(Print, ShowsOrigins) {
  const Node resolved = resolve_example("optimizer:\n  name: sgd\n", {"loader.workers=5"});
  EXPECT_EQ(print(resolved, {.with_origins = true}),
            "title: \"run of nobody\"\n"
            "level: info\n"
            "loader:\n"
            "  workers: 5  # command line\n"
            "  shuffle: true\n"
            "optimizer:\n"
            "  name: sgd  # test.yaml:2\n"
            "  lr: 0.1\n");
  EXPECT_NE(
      print(resolved, {.with_origins = true, .mark_defaults = true}).find("  lr: 0.1  # default\n"),
      std::string::npos);
}

TEST(Print, EscapesInterpolationsOfAResolvedTree) {
  EXPECT_EQ(print_inline(Node::string("${a}")), "\"\\\\${a}\"");
  EXPECT_EQ(print_inline(Node::string("${a}"), {.escape_interpolation = false}), "\"${a}\"");
}

TEST(Json, IsTyped) {
  Node node = Node::map();
  node.set("b", Node::boolean(true));
  node.set("i", Node::integer(-3));
  node.set("r", Node::real(1e-4));
  node.set("n", Node::null());
  node.set("s", Node::string("1\n\"\x01é"));
  node.set("inf", Node::real(std::numeric_limits<double>::infinity()));
  node.set("l", Node::list({Node::plain("1"), Node::plain("x"), Node::plain("0x10")}));
  node.set("m", Node::map());
  EXPECT_EQ(to_json(node),
            "{\"b\": true, \"i\": -3, \"r\": 1.0e-04, \"n\": null, "
            "\"s\": \"1\\n\\\"\\u0001é\", \"inf\": \".inf\", \"l\": [1, \"x\", 16], \"m\": {}}");
}

/// Random trees of every kind of value.
class RandomTree {
 public:
  explicit RandomTree(unsigned seed) : random_(seed) {}

  Node map(int depth) {
    Node node = Node::map();
    const int size = below(5);
    for (int i = 0; i < size; ++i) node.set(text(), value(depth - 1));
    return node;
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  Node value(int depth) {
    switch (below(depth > 0 ? 8 : 6)) {
      case 0:
        return Node::null();
      case 1:
        return Node::boolean(below(2) == 0);
      case 2:
        return Node::integer(static_cast<std::int64_t>(random_()) >> below(63));
      case 3:
        return Node::real(std::ldexp(static_cast<double>(random_()) - 2e9, below(200) - 100));
      case 4:
      case 5:
        return Node::string(text());
      case 6:
        return map(depth);
      default:
        break;
    }
    Node list = Node::list();
    const int size = below(4);
    for (int i = 0; i < size; ++i) list.items.push_back(value(depth - 1));
    return list;
  }

  std::string text() {
    static const std::vector<std::string> kParts = {
        "a", "B", "0", "1",    ".",    "-",    "_",    " ",    "\n", "\t", ":", "#",
        ",", "[", "]", "{",    "}",    "&",    "*",    "!",    "|",  ">",  "'", "\"",
        "%", "@", "`", "?",    "\\",   "$",    "${",   "~",    "é",  "€",  "😀", "e",
        "x", "=", "/", "\x01", "\x04", "\x7F", "null", "true", "no", "\r", "<<"};
    std::string result;
    const int size = below(7);
    for (int i = 0; i < size; ++i) {
      result += kParts[static_cast<std::size_t>(below(static_cast<int>(kParts.size())))];
    }
    return result == "<<" ? "" : result;
  }

  std::mt19937_64 random_;
};

TEST(Print, ReadsBackToTheSameTree) {
  for (unsigned seed = 0; seed < 4000; ++seed) {
    Node tree = RandomTree(seed).map(5);
    tree.set("last", Node::integer(0));
    const std::string printed = print(tree, {.escape_interpolation = false});
    Diagnostics diagnostics;
    const Node back = parse_yaml(printed, "a.yaml", diagnostics);
    ASSERT_TRUE(diagnostics.empty()) << diagnostics.text() << printed;
    ASSERT_TRUE(same_value(tree, back)) << seed << "\n" << printed << print(back);
    const std::string line = print_inline(tree, {.escape_interpolation = false});
    ASSERT_TRUE(same_value(tree, parse_yaml(line, "a.yaml", diagnostics))) << seed << "\n" << line;
  }
}

TEST(Print, OfAResolvedTextResolvesToTheSameText) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random(seed);
    std::string text = "x";
    for (int i = 0; i < 6; ++i) {
      const char* parts[] = {"$", "{", "}", "\\", "${", "a"};
      text += parts[random() % 6];
    }
    Node tree = resolve_example("optimizer: sgd");
    tree.set("title", Node::string(text));
    const Node back = resolve_example(print(tree));
    ASSERT_EQ(back.find("title")->text, text) << print(tree);
  }
}

}  // namespace
}  // namespace phalanx::config
