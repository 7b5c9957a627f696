// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/decoders/decoder.h"

#include <utility>

namespace phalanx {

void TokenDecoder::take(const TokenPart& part, DecoderState& state, Give give) const {
  if (part.begins && part.ends) {
    take_token(part.text, state, give);
    return;
  }
  state.parts += part.text;
  if (part.ends) take_token(std::exchange(state.parts, {}), state, give);
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  while (true) {
    const size_t place = text.find(from);
    result += text.substr(0, place);
    if (place == std::string_view::npos) return result;
    result += to;
    text.remove_prefix(place + from.size());
  }
}

}  // namespace phalanx
