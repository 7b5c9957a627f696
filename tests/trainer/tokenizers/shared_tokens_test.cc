// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/shared_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/tokenizers/byte_tokenizer.h"
#include "trainer/tokenizers/character_tokenizer.h"

namespace phalanx {
namespace {

using testing::ElementsAre;

TEST(SharedTokens, StandForTheSameBytes) {
  const CharacterTokenizer here("abcd");
  const CharacterTokenizer there("0ad");
  EXPECT_THAT(tokens_there(here, 4, there, 3), ElementsAre(1, -1, -1, 2));
  EXPECT_THAT(tokens_there(here, 4, there, 2), ElementsAre(1, -1, -1, -1)) << "no such row there";
}

// A model may have more rows than its tokenizer tokens.
TEST(SharedTokens, WithoutATextAreThoseOfTheSameNumber) {
  const CharacterTokenizer here("ab");
  const CharacterTokenizer there("b");
  EXPECT_THAT(tokens_there(here, 4, there, 4), ElementsAre(-1, 0, 2, 3));
  EXPECT_THAT(tokens_there(here, 3, there, 2), ElementsAre(-1, 0, -1));
}

TEST(SharedTokens, HaveBytesThatAreNoCharacter) {
  const ByteTokenizer bytes;
  EXPECT_EQ(bytes_within_text(bytes, 'a'), "a");
  EXPECT_EQ(bytes_within_text(bytes, 256), std::nullopt);
  EXPECT_EQ(bytes_within_text(bytes, -1), std::nullopt);
  const auto same = tokens_there(bytes, 256, bytes, 256);
  for (int64_t token = 0; token < 256; ++token) EXPECT_EQ(same[token], token);
}

}  // namespace
}  // namespace phalanx
