// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/tokenizers/fuzz/use.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/promise.h"
#include "trainer/base/utf8_repair.h"
#include "trainer/tokenizers/streaming_decoder.h"

namespace phalanx::fuzzing {
namespace {

constexpr std::string_view kTexts[] = {
    "",
    "hello world's 12345   \n\n<|endoftext|>",
    "\u00fcber \u4e16\u754c \U0001F600\u200d\u180e\u0085",
    "\xff\xc3(\xf0\x9f",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    "aa",
};

std::string streamed(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens) {
  StreamingDecoder decoder(tokenizer);
  std::string text;
  for (const int32_t token : tokens) text += decoder.add(token);
  return text + decoder.finish();
}

void require_decodes(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens) {
  const std::string text = decode(tokenizer, tokens);
  require(well_formed_length(text) == text.size(), "a decoded text is UTF-8");
  require(streamed(tokenizer, tokens) == text, "a text that is decoded token by token is the same");
}

}  // namespace

void use(const Tokenizer& tokenizer) {
  const int32_t size = tokenizer.vocabulary_size();
  for (const std::string_view text : kTexts) {
    for (const SpecialText special : {SpecialText::ordinary, SpecialText::token}) {
      const std::vector<int32_t> tokens = encode(tokenizer, text, special);
      for (const int32_t token : tokens) {
        require(token >= 0 && token < size, "a token is in the vocabulary");
      }
      require_decodes(tokenizer, tokens);
    }
  }
  require_decodes(tokenizer, {-1, 0, size / 2, size - 1, size, INT32_MAX});
}

}  // namespace phalanx::fuzzing
