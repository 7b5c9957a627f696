// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "trainer/base/utf8_repair.h"
#include "trainer/tokenizers/byte_tokens.h"
#include "trainer/tokenizers/decoders/kinds.h"

namespace phalanx::decoders {
namespace {

using nlohmann::json;

// "<0xC3>", "<0xA9>" as one token; where a run of such tokens is no text, each is U+FFFD.
class ByteFallback final : public TokenDecoder {
 public:
  void finish(DecoderState& state, Give give) const override {
    const std::string run = std::exchange(state.held, {});
    if (run.empty()) return;
    if (well_formed_length(run) == run.size()) {
      give({.text = run});
      return;
    }
    for (size_t i = 0; i < run.size(); ++i) give({.text = "\uFFFD"});
  }

 protected:
  void take_token(std::string_view token, DecoderState& state, Give give) const override {
    if (const auto byte = byte_of_token(token)) {
      state.held += *byte;
      return;
    }
    finish(state, give);
    give({.text = token});
  }
};

}  // namespace

Made read_byte_fallback(const json& /*object*/) { return std::make_shared<ByteFallback>(); }

}  // namespace phalanx::decoders
