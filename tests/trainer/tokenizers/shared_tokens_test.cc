// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/shared_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/tokenizers/small_sentencepiece.h"
#include "trainer/tokenizers/byte_tokenizer.h"
#include "trainer/tokenizers/character_tokenizer.h"
#include "trainer/tokenizers/sentencepiece_tokenizer.h"

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

SentencePieceTokenizer tokenizer_of(const sentencepiece::ModelProto& model) {
  return SentencePieceTokenizer(model.SerializeAsString());
}

// "<0x61>" is "a" as well, and nothing is written with it.
TEST(SharedTokens, ArePiecesBeforeTokensOfBytes) {
  const auto here = tokenizer_of(small_model());
  const CharacterTokenizer there("ab");
  const auto same = tokens_there(here, 263, there, 2);
  EXPECT_EQ(same[260], 0);
  EXPECT_EQ(same[3 + 'a'], -1);
  EXPECT_EQ(same[3 + 'b'], 1) << "no piece is \"b\"";
  EXPECT_EQ(tokens_there(there, 2, here, 263)[0], 260);
}

TEST(SharedTokens, OfBytesAreTheSameWhereverTheyBegin) {
  const auto here = tokenizer_of(small_model());
  auto more = small_model();
  auto& piece = *more.add_pieces();
  piece.set_piece("<pad>");
  piece.set_type(sentencepiece::ModelProto::SentencePiece::CONTROL);
  for (int at = more.pieces_size() - 1; at > 3; --at) {
    more.mutable_pieces()->SwapElements(at, at - 1);
  }
  const auto same = tokens_there(here, 263, tokenizer_of(more), 264);
  for (const int byte : {0x20, 0x41, 0x80, 0xBF, 0xC2, 0xDF, 0xE0, 0xEF, 0xF0, 0xF4}) {
    EXPECT_EQ(same[3 + byte], 4 + byte) << byte;
  }
}

}  // namespace
}  // namespace phalanx
