// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/decoders/kinds.h"

namespace phalanx::decoders {
namespace {

class Spaced final : public TokenDecoder {
 protected:
  void take_token(std::string_view token, DecoderState& state, Give give) const override {
    if (state.has_begun) give({.text = " "});
    state.has_begun = true;
    give({.text = token});
  }
};

}  // namespace

Made make_spaced() { return std::make_shared<Spaced>(); }

}  // namespace phalanx::decoders
