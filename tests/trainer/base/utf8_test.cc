// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/utf8.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(Utf8, KnowsTheLengthOfACharacter) {
  EXPECT_EQ(character_length("a"), 1);
  EXPECT_EQ(character_length("\u00e9x"), 2);
  EXPECT_EQ(character_length("\u20ac"), 3);
  EXPECT_EQ(character_length("\U0001F600"), 4);
}

TEST(Utf8, RefusesWhatIsNoCharacter) {
  EXPECT_EQ(character_length(""), 0);
  EXPECT_EQ(character_length("\x80"), 0) << "no first byte";
  EXPECT_EQ(character_length("\xC3"), 0) << "cut off";
  EXPECT_EQ(character_length("\xC3("), 0) << "not continued";
  EXPECT_EQ(character_length("\xC0\x80"), 0) << "longer than it needs to be";
  EXPECT_EQ(character_length("\xED\xA0\x80"), 0) << "half of a surrogate pair";
  EXPECT_EQ(character_length("\xF4\x90\x80\x80"), 0) << "beyond Unicode";
}

TEST(Utf8, KnowsWhatATerminalObeys) {
  for (const char* control : {"\n", "\x1b", "\x7f", "\u0080", "\u009f"}) {
    EXPECT_TRUE(is_control(control));
  }
  for (const char* character : {" ", "~", "\u00a0", "\u00e9", "\u20ac", ""}) {
    EXPECT_FALSE(is_control(character));
  }
}

TEST(FirstBytes, CutNoCharacterInTwo) {
  EXPECT_EQ(first_bytes("a\u20ac", 4), "a\u20ac");
  EXPECT_EQ(first_bytes("a\u20ac", 9), "a\u20ac");
  for (const std::size_t most : {1, 2, 3}) EXPECT_EQ(first_bytes("a\u20ac", most), "a");
  EXPECT_EQ(first_bytes("\u20ac", 2), "");
}

TEST(SingleLine, KeepsCharactersAndBlanksControls) {
  EXPECT_EQ(single_line("a \u00e9 \U0001F600"), "a \u00e9 \U0001F600");
  EXPECT_EQ(single_line("a\tb\nc\x1b[0m\x7F."), "a b c [0m .");
  EXPECT_EQ(single_line("\u009b1m\u00a0"), " 1m\u00a0");
}

TEST(SingleLine, ReplacesEachByteThatIsNoUtf8) {
  EXPECT_EQ(single_line("a\xC3(\xF0\x9F"), "a\uFFFD(\uFFFD\uFFFD");
}

}  // namespace
}  // namespace phalanx
