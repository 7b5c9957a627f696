// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/streaming_decoder.h"

#include <utility>

#include "trainer/base/utf8_repair.h"

namespace phalanx {

std::string StreamingDecoder::add(int32_t token) {
  tokenizer_.append_bytes(token, begins_text_, bytes_);
  begins_text_ = false;
  const size_t whole = bytes_.size() - unfinished_length(bytes_);
  std::string text = repaired_utf8(std::string_view(bytes_).substr(0, whole));
  bytes_.erase(0, whole);
  return text;
}

std::string StreamingDecoder::finish() {
  begins_text_ = true;
  return repaired_utf8(std::exchange(bytes_, {}));
}

}  // namespace phalanx
