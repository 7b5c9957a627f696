// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "trainer/base/utf8_repair.h"
#include "trainer/tokenizers/byte_alphabet.h"
#include "trainer/tokenizers/decoders/kinds.h"

namespace phalanx::decoders {
namespace {

using nlohmann::json;

// One token of the bytes that the characters of all stand for. A token with other characters is its
// own bytes.
class ByteLevel final : public TokenDecoder {
 public:
  void finish(DecoderState& state, Give give) const override {
    const std::string rest = repaired_utf8(state.held);
    give({.text = rest, .begins = !state.has_begun, .ends = true});
    state.held.clear();
  }

 protected:
  void take_token(std::string_view token, DecoderState& state, Give give) const override {
    const auto bytes = bytes_of_visible(token);
    state.held += bytes ? std::string_view(*bytes) : token;
    const size_t whole = state.held.size() - unfinished_length(state.held);
    const std::string text = repaired_utf8(std::string_view(state.held).substr(0, whole));
    state.held.erase(0, whole);
    give({.text = text, .begins = !state.has_begun, .ends = false});
    state.has_begun = true;
  }
};

}  // namespace

Made read_byte_level(const json& /*object*/) { return std::make_shared<ByteLevel>(); }

}  // namespace phalanx::decoders
