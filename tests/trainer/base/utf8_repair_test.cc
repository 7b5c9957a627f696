// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/utf8_repair.h"

#include <gtest/gtest.h>

#include <random>

#include "trainer/base/utf8.h"

namespace phalanx {
namespace {

constexpr const char* kMixed = "a long line of ASCII, \u00e9, \u20ac and \U0001F600 in it";

TEST(WellFormedLength, IsTheWholeOfAWellFormedText) {
  EXPECT_EQ(well_formed_length(""), 0);
  EXPECT_EQ(well_formed_length(kMixed), std::string_view(kMixed).size());
}

TEST(WellFormedLength, EndsBeforeWhatIsNoUtf8) {
  for (size_t place = 0; place < 20; ++place) {
    std::string text(20, 'x');
    text[place] = '\xFF';
    EXPECT_EQ(well_formed_length(text), place);
  }
  EXPECT_EQ(well_formed_length("ab\xE2\x82"), 2);
}

// The examples of Unicode 15, section 3.9, tables 3-8 to 3-11.
TEST(RepairedUtf8, PutsOneReplacementForEachMaximalPart) {
  EXPECT_EQ(repaired_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\x41");
  EXPECT_EQ(repaired_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\x41");
  EXPECT_EQ(repaired_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\x41\uFFFD\uFFFD\x42");
  EXPECT_EQ(repaired_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "\uFFFD\uFFFD\uFFFD\uFFFD\x41");
}

TEST(RepairedUtf8, KeepsWhatIsWellFormed) { EXPECT_EQ(repaired_utf8(kMixed), kMixed); }

TEST(RepairedUtf8, IsWellFormedWhateverItWas) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> byte(0, 255);
  for (int i = 0; i < 2000; ++i) {
    std::string text(1 + i % 12, '\0');
    for (char& c : text) c = static_cast<char>(byte(random) | (i % 2 == 0 ? 0x80 : 0));
    const std::string repaired = repaired_utf8(text);
    EXPECT_EQ(well_formed_length(repaired), repaired.size());
    EXPECT_EQ(repaired_utf8(repaired), repaired);
  }
}

TEST(UnfinishedLength, CountsTheBytesOfAHalfCharacter) {
  const std::string_view smiley = "\U0001F600";
  for (size_t length = 1; length < smiley.size(); ++length) {
    EXPECT_EQ(unfinished_length("x" + std::string(smiley.substr(0, length))), length);
  }
  EXPECT_EQ(unfinished_length("\xE0\xA0"), 2);
}

TEST(UnfinishedLength, IsZeroWhereNoByteWouldHelp) {
  for (const char* text : {"", "x", "\U0001F600", "\x80", "\xFF", "\xC0", "\xE0\x80", "\xF4\x90"}) {
    EXPECT_EQ(unfinished_length(text), 0) << text;
  }
}

}  // namespace
}  // namespace phalanx
