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

std::string decode(const Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  std::string bytes;
  bool begins_text = true;
  for (const int32_t token : tokens) {
    tokenizer.append_bytes(token, begins_text, bytes);
    begins_text = false;
  }
  return repaired_utf8(bytes);
}

}  // namespace phalanx
