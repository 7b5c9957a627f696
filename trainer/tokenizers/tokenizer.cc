// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/tokenizer.h"

#include "trainer/base/utf8_repair.h"

namespace phalanx {

std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text,
                            SpecialText special) {
  std::vector<int32_t> tokens;
  tokenizer.encode(text, special, tokens);
  return tokens;
}

std::string decoded_bytes(const Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  std::string bytes;
  DecodingState state;
  for (const int32_t token : tokens) tokenizer.append_bytes(token, state, bytes);
  tokenizer.append_rest(state, bytes);
  return bytes;
}

std::string decode(const Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  return repaired_utf8(decoded_bytes(tokenizer, tokens));
}

}  // namespace phalanx
