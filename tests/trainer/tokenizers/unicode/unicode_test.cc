// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "trainer/tokenizers/unicode/categories.h"
#include "trainer/tokenizers/unicode/characters.h"
#include "trainer/tokenizers/unicode/graphemes.h"
#include "trainer/tokenizers/unicode/normal_forms.h"
#include "trainer/tokenizers/unicode/scripts.h"

namespace phalanx::unicode {
namespace {

TEST(Unicode, ReadsAndWritesEachCharacter) {
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_character(code, text);
    const Character character = character_at(text, 0);
    ASSERT_EQ(character.code, code);
    ASSERT_EQ(character.length, text.size());
    ASSERT_EQ(last_character_length("a" + text), text.size());
  }
  EXPECT_EQ(count_characters("a\u00e9\u4e16\U0001F600"), 4);
}

TEST(Unicode, MakesNormalFormsOfPartsAsOfTheWhole) {
  EXPECT_EQ(normal_form("abc e\u0301xe\u0301", NormalForm::nfc), "abc \u00e9x\u00e9");
  EXPECT_EQ(normal_form("a\u0327\u0301 \u0301a", NormalForm::nfc), "\u00e1\u0327 \u0301a");
  EXPECT_EQ(normal_form("\u1112\u1161\u11ab", NormalForm::nfc), "\ud55c");
  EXPECT_EQ(normal_form("\u4e16\u0301\u4e16", NormalForm::nfd), "\u4e16\u0301\u4e16");
  EXPECT_EQ(normal_form("\u2460\ufdfa", NormalForm::nfkd).size(), 34);
  EXPECT_EQ(normal_form("a\u0315\u1ac5\u0300", NormalForm::nfd), "a\u0315\u1ac5\u0300")
      << "U+1AC5 is newer than the package's tables";
  EXPECT_EQ(normal_form("", NormalForm::nfc), "");
}

TEST(Unicode, KnowsTheKindsOfCharacters) {
  EXPECT_TRUE(is_white_space(0x3000) && !is_white_space(0x200B));
  EXPECT_TRUE(is_numeric(U'\u00bd') && is_numeric(U'\u0663') && !is_numeric(U'a'));
  EXPECT_TRUE(is_word(0x200D) && is_word(0x24B6) && is_word(U'_') && !is_word(U'-'));
  EXPECT_TRUE(is_punctuation(U'$') && is_punctuation(0x3001) && !is_punctuation(0x20AC));
  EXPECT_FALSE(is_punctuation(0x2E52)) << "newer than the package's tables";
  EXPECT_TRUE(is_other(0x200B) && is_other(0xE000) && !is_other(0x0378));
  EXPECT_TRUE(is_mark(0x0903) && !is_nonspacing_mark(0x0903) && is_nonspacing_mark(0x0301));
}

TEST(Unicode, KnowsScripts) {
  EXPECT_EQ(script_of(0x3042), script_of(0x4E16));
  EXPECT_NE(script_of(U'a'), script_of(0x0430));
  EXPECT_EQ(script_of(U' '), 0);
}

TEST(Unicode, KnowsGraphemes) {
  const std::string family = "\U0001F468\u200d\U0001F469";
  EXPECT_EQ(grapheme_length(family + "a", 0), family.size());
  EXPECT_EQ(grapheme_length("e\u0301a", 0), 3);
  EXPECT_EQ(grapheme_length("\r\n", 0), 2);
  EXPECT_EQ(grapheme_length("ab", 0), 1);
}

}  // namespace
}  // namespace phalanx::unicode
