// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/streaming_decoder.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "trainer/base/utf8_repair.h"
#include "trainer/tokenizers/byte_tokenizer.h"

namespace phalanx {
namespace {

TEST(StreamingDecoder, ReturnsNoHalfCharacters) {
  const ByteTokenizer tokenizer;
  StreamingDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.add('a'), "a");
  EXPECT_EQ(decoder.add(0xC3), "");
  EXPECT_EQ(decoder.add(0xA9), "\u00e9");
  EXPECT_EQ(decoder.add(0xE2), "");
  EXPECT_EQ(decoder.add('b'), "\uFFFDb") << "the half character was none";
  EXPECT_EQ(decoder.add(0xF0), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamingDecoder, ReturnsWhatDecodeReturns) {
  const ByteTokenizer tokenizer;
  std::mt19937 random(3);
  std::uniform_int_distribution<int32_t> byte(0, 255);
  for (int round = 0; round < 500; ++round) {
    std::vector<int32_t> tokens(20);
    for (int32_t& token : tokens) token = byte(random) | (round % 2 == 0 ? 0x80 : 0);
    StreamingDecoder decoder(tokenizer);
    std::string text;
    for (const int32_t token : tokens) {
      const std::string part = decoder.add(token);
      EXPECT_EQ(well_formed_length(part), part.size());
      text += part;
    }
    text += decoder.finish();
    EXPECT_EQ(text, decode(tokenizer, tokens));
  }
}

}  // namespace
}  // namespace phalanx
