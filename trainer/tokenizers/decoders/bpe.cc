// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "trainer/tokenizers/decoders/kinds.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"

namespace phalanx::decoders {
namespace {

using nlohmann::json;

// Shows the suffix of words as a space; that of the last token is left out, so one token waits.
class Bpe final : public TokenDecoder {
 public:
  explicit Bpe(std::string suffix) : suffix_(std::move(suffix)) {}

  void finish(DecoderState& state, Give give) const override {
    if (state.has_begun) give_held(state, "", give);
    state.has_begun = false;
  }

 protected:
  void take_token(std::string_view token, DecoderState& state, Give give) const override {
    if (state.has_begun) give_held(state, " ", give);
    state.has_begun = true;
    state.held = token;
  }

 private:
  void give_held(const DecoderState& state, std::string_view for_suffix, Give give) const {
    const std::string text = replaced(state.held, suffix_, for_suffix);
    give({.text = text});
  }

  std::string suffix_;
};

}  // namespace

Made read_bpe(const json& object) {
  auto suffix = object.at("suffix").get<std::string>();
  if (suffix.empty()) refuse_part("a BPEDecoder without a suffix");
  return std::make_shared<Bpe>(std::move(suffix));
}

}  // namespace phalanx::decoders
