// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/rouge.h"

#include <gtest/gtest.h>

#include <string>

namespace phalanx {
namespace {

void expect_rouge(std::string_view text, std::string_view reference, const Rouge& expected) {
  const Rouge found = rouge(text, reference);
  EXPECT_DOUBLE_EQ(found.rouge1, expected.rouge1) << text << " | " << reference;
  EXPECT_DOUBLE_EQ(found.rouge2, expected.rouge2) << text << " | " << reference;
  EXPECT_DOUBLE_EQ(found.rouge_l, expected.rouge_l) << text << " | " << reference;
  EXPECT_DOUBLE_EQ(found.rouge_lsum, expected.rouge_lsum) << text << " | " << reference;
}

// With h hits among n words of the text and m of the reference, the F-measure is 2 h / (n + m).

TEST(Rouge, IsZeroWithoutWords) {
  expect_rouge("", "", {});
  expect_rouge("", "a cat", {});
  expect_rouge("a cat", "", {});
  expect_rouge("\n\n", "a cat", {});
  expect_rouge("a cat", " ... \n !?", {});
  expect_rouge("?", "?", {});
}

TEST(Rouge, IsZeroWithoutACommonWord) { expect_rouge("a cat sat", "the dogs stood", {}); }

TEST(Rouge, IsOneForTheSameWords) {
  expect_rouge("A cat sat.", "a CAT -- sat", {1, 1, 1, 1});
  expect_rouge("one\ntwo words\n", "one\n\ntwo words", {1, 1, 1, 1});
}

TEST(Rouge, HasNoPairsOfASingleWord) { expect_rouge("cat", "cat", {1, 0, 1, 1}); }

TEST(Rouge, CountsWordsAndPairs) {
  // "the brown dog" and "the quick brown fox" share: the, brown; no pair; "the brown".
  expect_rouge("the brown dog", "the quick brown fox", {4.0 / 7, 0, 4.0 / 7, 4.0 / 7});
  // Lin 2004, section 3.1: the order tells the two texts apart only by rouge_l.
  expect_rouge("police kill the gunman", "police killed the gunman", {0.75, 1.0 / 3, 0.75, 0.75});
  expect_rouge("the gunman kill police", "police killed the gunman", {0.75, 1.0 / 3, 0.5, 0.5});
}

TEST(Rouge, CountsARepeatedWordAsOftenAsBothHaveIt) {
  expect_rouge("the the the", "the cat", {0.4, 0, 0.4, 0.4});
  // Words: a a b b of 4 and 5. Pairs: twice "a b" of 3 and 4.
  expect_rouge("a b a b", "a b c a b", {8.0 / 9, 4.0 / 7, 8.0 / 9, 8.0 / 9});
}

TEST(Rouge, SplitsWordsAtWhatIsNeitherLetterNorDigit) {
  expect_rouge("it's 3.14_x\r", "it s 3 14 x", {1, 1, 1, 1});
  expect_rouge(std::string_view("a\0b", 3), "a b", {1, 1, 1, 1});
}

TEST(RougeLsum, FindsLinesInAnyOrder) {
  expect_rouge("b\na", "a\nb", {1, 0, 0.5, 1});
  expect_rouge("b a", "a b", {1, 0, 0.5, 0.5});
}

TEST(RougeLsum, UnitesSubsequences) {
  // Lin 2004, section 3.2: w1 w2 with the first line, w1 w3 w5 with the second, w1 w2 w3 w5 of 5
  // and 10 words in all. Words besides: w1 once, as the reference has it. Pairs: w1 w2 of 9 and 4.
  expect_rouge("w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5",
               {8.0 / 15, 2.0 / 13, 8.0 / 15, 8.0 / 15});
}

TEST(RougeLsum, UsesAWordOfTheTextOnce) {
  expect_rouge("a", "a\na", {2.0 / 3, 0, 2.0 / 3, 2.0 / 3});
  expect_rouge("a\na", "a", {2.0 / 3, 0, 2.0 / 3, 2.0 / 3});
}

TEST(RougeLsum, TakesTheSubsequenceThatEndsEarlierInTheReference) {
  // "b a" has a or b in common with "a b": a, as "a" has too, so that b is no hit.
  expect_rouge("b a\na", "a b", {0.8, 0, 0.4, 0.4});
}

TEST(Rouge, SeparatesWordsAtOtherLetters) {
  expect_rouge("na\u00EFve", "NA\u00CFVE", {1, 1, 1, 1});
  expect_rouge("na\u00EFve", "na ve", {1, 1, 1, 1});
  expect_rouge("\u4E16\u754C", "\u4E16\u754C", {});
  // U+017F, the long s, is in lower case already.
  expect_rouge("\u017Fo", "so", {});
}

TEST(Rouge, TakesLowerCaseAsPythonDoes) {
  // U+212A, the Kelvin sign, becomes k; U+0130 becomes i and a dot of its own, U+0307.
  expect_rouge("5\u212A", "5k", {1, 0, 1, 1});
  expect_rouge("\u0130stanbul", "i stanbul", {1, 1, 1, 1});
  expect_rouge("\u0131stanbul", "stanbul", {1, 0, 1, 1});
}

TEST(Rouge, SeparatesWordsAtWhatIsNoUtf8) {
  expect_rouge(
      "a\xFF"
      "b\xC4",
      "a b", {1, 1, 1, 1});
  expect_rouge("a\xE2\x84", "a", {1, 0, 1, 1});
}

TEST(Rouge, TakesLongTexts) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "w" + std::to_string(i % 7 * i) + " ";
  expect_rouge(text, text, {1, 1, 1, 1});
}

TEST(IsExactMatch, IgnoresWhiteSpaceAtTheEnds) {
  EXPECT_TRUE(is_exact_match("", ""));
  EXPECT_TRUE(is_exact_match("", " \t\r\n\v\f"));
  EXPECT_TRUE(is_exact_match(" a b\n", "a b"));
  EXPECT_TRUE(is_exact_match("na\u00EFve", "\tna\u00EFve"));
}

TEST(IsExactMatch, MindsAllElse) {
  EXPECT_FALSE(is_exact_match("", "a"));
  EXPECT_FALSE(is_exact_match("a", "A"));
  EXPECT_FALSE(is_exact_match("a  b", "a b"));
  EXPECT_FALSE(is_exact_match("a.", "a"));
  EXPECT_FALSE(is_exact_match("a\u00A0", "a"));
}

}  // namespace
}  // namespace phalanx
