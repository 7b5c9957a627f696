// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/character_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CharacterTokenizer, NumbersCharactersInTheOrderOfUnicode) {
  const CharacterTokenizer tokenizer("b\u20aca\u00e9b\U0001F600\n");
  EXPECT_EQ(tokenizer.vocabulary_size(), 6);
  EXPECT_EQ(tokenizer.characters(), "\nab\u00e9\u20ac\U0001F600");
  EXPECT_THAT(encode(tokenizer, "\u00e9a\U0001F600\n"), ElementsAre(3, 1, 5, 0));
  EXPECT_EQ(decode(tokenizer, std::vector<int32_t>{3, 1, 5, 0, 6}), "\u00e9a\U0001F600\n\uFFFD");
}

TEST(CharacterTokenizer, NamesACharacterThatItDoesNotKnow) {
  const CharacterTokenizer tokenizer("ab");
  try {
    encode(tokenizer, "a\u00e9");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("'\u00e9' (bytes c3 a9)"));
  }
}

}  // namespace
}  // namespace phalanx
