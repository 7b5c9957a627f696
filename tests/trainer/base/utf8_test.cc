#include "trainer/base/utf8.h"

#include <gtest/gtest.h>

namespace phalanx::config {
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

TEST(Printable, KeepsCharactersAndBlanksControls) {
  EXPECT_EQ(printable("a \u00e9 \U0001F600"), "a \u00e9 \U0001F600");
  EXPECT_EQ(printable("a\tb\nc\x1b[0m\x7F."), "a b c [0m .");
  EXPECT_EQ(printable("\u009b1m\u00a0"), " 1m\u00a0");
}

TEST(Printable, ReplacesEachByteThatIsNoUtf8) {
  EXPECT_EQ(printable("a\xC3(\xF0\x9F"), "a\uFFFD(\uFFFD\uFFFD");
}

}  // namespace
}  // namespace phalanx::config
