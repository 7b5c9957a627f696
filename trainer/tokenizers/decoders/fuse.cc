// SPDX-License-Identifier: Apache-2.0

#include "trainer/tokenizers/decoders/kinds.h"

namespace phalanx::decoders {
namespace {

using nlohmann::json;

// One token of all.
class Fuse final : public Decoder {
 public:
  void take(const TokenPart& part, DecoderState& state, Give give) const override {
    give({.text = part.text, .begins = !state.has_begun, .ends = false});
    state.has_begun = true;
  }

  void finish(DecoderState& state, Give give) const override {
    give({.text = {}, .begins = !state.has_begun, .ends = true});
  }
};

}  // namespace

Made read_fuse(const json& /*object*/) { return std::make_shared<Fuse>(); }

}  // namespace phalanx::decoders
