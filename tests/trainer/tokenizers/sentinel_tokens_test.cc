// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/sentinel_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "trainer/tokenizers/byte_tokenizer.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using Tokens = std::vector<int32_t>;

std::shared_ptr<const Tokenizer> bytes_with_sentinels() {
  return with_sentinels(std::make_shared<ByteTokenizer>(), 355, 100);
}

TEST(SentinelTokens, AreReadAndWritten) {
  const auto tokenizer = bytes_with_sentinels();
  for (const SpecialText special : {SpecialText::ordinary, SpecialText::token}) {
    EXPECT_THAT(encode(*tokenizer, "a<extra_id_0>b<extra_id_99>", special),
                ElementsAre('a', 355, 'b', 256));
  }
  EXPECT_EQ(decode(*tokenizer, Tokens{'a', 355, 'b', 256}), "a<extra_id_0>b<extra_id_99>");
  EXPECT_EQ(tokenizer->vocabulary_size(), 356);
  EXPECT_THAT(encode(*tokenizer, "<extra_id_1><extra_id_0>"), ElementsAre(354, 355));
}

TEST(SentinelTokens, AreReadAsSpecialTokensWhereAsked) {
  const auto tokenizer =
      with_sentinels(std::make_shared<ByteTokenizer>(), 355, 100, SentinelTexts::as_special);
  EXPECT_THAT(encode(*tokenizer, "a<extra_id_0>", SpecialText::token), ElementsAre('a', 355));
  EXPECT_EQ(encode(*tokenizer, "a<extra_id_0>", SpecialText::ordinary),
            encode(ByteTokenizer(), "a<extra_id_0>"));
  EXPECT_EQ(decode(*tokenizer, Tokens{'a', 355}), "a<extra_id_0>");
}

TEST(SentinelTokens, OfNoNumberAreText) {
  const auto tokenizer = bytes_with_sentinels();
  const ByteTokenizer bytes;
  for (const char* text :
       {"", "<extra_id_100>", "<extra_id_00>", "<extra_id_>", "<extra_id_-1>", "<extra_id_5",
        "<extra_id_5 >", "<extra_id_99999999999999999999>", "<extra_id_<extra_id_"}) {
    EXPECT_EQ(encode(*tokenizer, text), encode(bytes, text)) << text;
  }
  EXPECT_THAT(encode(*tokenizer, "<extra_id_<extra_id_7>").back(), 348);
}

TEST(SentinelTokens, LeaveOtherTokensAlone) {
  const auto tokenizer = bytes_with_sentinels();
  const ByteTokenizer bytes;
  const std::string text = "no sentinel in it: \xC3\xA4";
  EXPECT_EQ(encode(*tokenizer, text), encode(bytes, text));
  EXPECT_EQ(decode(*tokenizer, Tokens{'x', 356, 'y'}), decode(bytes, Tokens{'x', 356, 'y'}));
  EXPECT_EQ(tokenizer->end_of_text(), bytes.end_of_text());
}

TEST(SentinelTokens, AreNotAddedTwice) {
  const auto tokenizer = bytes_with_sentinels();
  EXPECT_EQ(with_sentinels(tokenizer, 455, 100), tokenizer);
}

TEST(SentinelTokens, BeginWithTheLastOneBehindTheTokens) {
  EXPECT_EQ(first_sentinel_behind(ByteTokenizer()), 355);
  EXPECT_EQ(first_sentinel_behind(ByteTokenizer(), 1), 256);
}

TEST(SentinelTokens, AreCounted) {
  EXPECT_EQ(sentinels_of(*bytes_with_sentinels()), 100);
  EXPECT_EQ(sentinels_of(ByteTokenizer()), 0);
}

}  // namespace
}  // namespace phalanx
