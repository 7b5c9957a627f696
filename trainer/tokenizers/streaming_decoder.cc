// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/streaming_decoder.h"

#include <utility>

#include "trainer/base/utf8_repair.h"

namespace phalanx {

std::string StreamingDecoder::add(int32_t token) {
  tokenizer_.append_bytes(token, state_, bytes_);
  const size_t whole = bytes_.size() - unfinished_length(bytes_);
  std::string text = repaired_utf8(std::string_view(bytes_).substr(0, whole));
  bytes_.erase(0, whole);
  return text;
}

std::string StreamingDecoder::finish() {
  tokenizer_.append_rest(state_, bytes_);
  state_ = {};
  return repaired_utf8(std::exchange(bytes_, {}));
}

}  // namespace phalanx
