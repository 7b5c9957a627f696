// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/tokenizers/streamed.h"

#include <gtest/gtest.h>

#include <vector>

#include "trainer/base/utf8_repair.h"
#include "trainer/tokenizers/streaming_decoder.h"

namespace phalanx {

void expect_streamed(const Tokenizer& tokenizer, std::mt19937& random) {
  std::uniform_int_distribution<int32_t> any(-1, tokenizer.vocabulary_size());
  StreamingDecoder decoder(tokenizer);
  for (int round = 0; round < 1000; ++round) {
    std::vector<int32_t> tokens(static_cast<size_t>(round % 20));
    for (int32_t& token : tokens) token = any(random);
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

}  // namespace phalanx
