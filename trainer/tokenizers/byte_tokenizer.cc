// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/byte_tokenizer.h"

#include "trainer/base/utf8_repair.h"

namespace phalanx {

void ByteTokenizer::encode(std::string_view text, SpecialText /*special*/,
                           std::vector<int32_t>& tokens) const {
  for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
}

void ByteTokenizer::append_bytes(int32_t token, DecodingState& /*state*/,
                                 std::string& bytes) const {
  if (token >= 0 && token < vocabulary_size()) {
    bytes += static_cast<char>(token);
  } else {
    bytes += "\xEF\xBF\xBD";
  }
}

// Not in a character, so that what counts characters may look at one part after the other.
std::size_t ByteTokenizer::last_cut(std::string_view text) const {
  return text.size() - unfinished_length(text);
}

}  // namespace phalanx
