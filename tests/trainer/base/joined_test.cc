// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/joined.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace phalanx {
namespace {

TEST(Joined, HasTheSeparatorInBetween) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(joined(Texts{}), "");
  EXPECT_EQ(joined(Texts{"a"}), "a");
  EXPECT_EQ(joined(Texts{"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(joined(std::set<std::string>{"b", "a"}, " or "), "a or b");
}

TEST(Joined, KeepsEmptyTexts) { EXPECT_EQ(joined(std::vector<std::string>{"", "a", ""}), ", a, "); }

TEST(Joined, MakesATextOfEachItem) {
  EXPECT_EQ(joined(std::vector<int>{1, 2}, "+", [](int item) { return std::to_string(item); }),
            "1+2");
}

}  // namespace
}  // namespace phalanx
