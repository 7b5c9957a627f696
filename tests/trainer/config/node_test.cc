// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/node.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "trainer/config/syntax/merge.h"

namespace phalanx::config {
namespace {

TEST(Node, FindsByDottedPath) {
  Node tree = Node::map();
  assign(tree, "a.b.c", Node::integer(3));
  EXPECT_EQ(tree.find_path("a.b.c")->text, "3");
  EXPECT_EQ(tree.find_path(""), &tree);
  EXPECT_EQ(tree.find_path("a.x.c"), nullptr);
  EXPECT_EQ(tree.find_path("a.b.c.d"), nullptr);
}

TEST(Node, AssignDoesNotEnterLists) {
  Node tree = Node::map();
  tree.set("a", Node::list({Node::integer(1)}));
  EXPECT_THROW(assign(tree, "a.b", Node::integer(2)), std::logic_error);
}

TEST(Node, OnlyAnUnquotedMarkIsMissing) {
  EXPECT_TRUE(Node::plain("???").is_missing());
  EXPECT_FALSE(Node::string("???").is_missing());
  EXPECT_FALSE(Node::null().is_missing());
}

TEST(SameValue, LooksThroughSpelling) {
  EXPECT_TRUE(same_value(Node::plain("1e-3"), Node::real(0.001)));
  EXPECT_TRUE(same_value(Node::plain("0x10"), Node::integer(16)));
  EXPECT_TRUE(same_value(Node::plain("abc"), Node::string("abc")));
  EXPECT_FALSE(same_value(Node::plain("1"), Node::string("1")));
  EXPECT_FALSE(same_value(Node::plain("1"), Node::real(1)));
  EXPECT_FALSE(same_value(Node::null(), Node::string("null")));
  EXPECT_FALSE(same_value(Node::list(), Node::map()));
}

TEST(Path, SplitsAndJoins) {
  EXPECT_EQ(join_path("", "a"), "a");
  EXPECT_EQ(join_path("a.b", "c"), "a.b.c");
  EXPECT_EQ(split_path("a.b.c"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(split_path("a"), (std::vector<std::string>{"a"}));
}

TEST(Origin, IsPrintedShort) {
  EXPECT_EQ(Origin().text(), "default");
  const auto file = std::make_shared<const Source>(Source{Source::Kind::file, "a.yaml", ""});
  EXPECT_EQ((Origin{file, 3, 4}.text()), "a.yaml:3");
  EXPECT_EQ((Origin{file, 0, 0}.text()), "a.yaml");
}

}  // namespace
}  // namespace phalanx::config
