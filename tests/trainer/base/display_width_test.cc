// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/display_width.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(DisplayWidth, IsOneColumnForMostCharacters) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("plain"), 5U);
  EXPECT_EQ(display_width("gr\u00fc\u00df \u00d7 \u2026"), 8U);
}

TEST(DisplayWidth, KnowsWideCharacters) {
  EXPECT_EQ(display_width("\u65e5\u672c\u8a9e"), 6U);
  EXPECT_EQ(display_width("\uff21 \U0001F600"), 5U);
}

TEST(DisplayWidth, KnowsWhatIsDrawnOverTheCharacterBefore) {
  EXPECT_EQ(display_width("e\u0301"), 1U) << "a combining accent";
}

TEST(DisplayWidth, CountsWhatIsNotShownAsItsReplacement) {
  EXPECT_EQ(display_width("a\tb\u009b"), 4U);
  EXPECT_EQ(display_width("\xff\x80"), 2U);
}

TEST(FirstColumns, AreAllThatFit) {
  EXPECT_EQ(first_columns("plain", 5), "plain");
  EXPECT_EQ(first_columns("plain", 4), "plai");
  EXPECT_EQ(first_columns("plain", 0), "");
}

TEST(FirstColumns, HoldWholeCharacters) {
  EXPECT_EQ(first_columns("\u65e5\u672c", 4), "\u65e5\u672c");
  EXPECT_EQ(first_columns("\u65e5\u672c", 3), "\u65e5");
  EXPECT_EQ(first_columns("\u65e5\u672c", 1), "");
  EXPECT_EQ(first_columns("\u00e9e\u0301x", 2), "\u00e9e\u0301") << "with its accent";
}

}  // namespace
}  // namespace phalanx
