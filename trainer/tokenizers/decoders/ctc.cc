// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "trainer/tokenizers/decoders/cleaned_up.h"
#include "trainer/tokenizers/decoders/kinds.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"

namespace phalanx::decoders {
namespace {

using nlohmann::json;

// Connectionist temporal classification: equal tokens in a row are one, and a pad is nothing.
class Ctc final : public TokenDecoder {
 public:
  Ctc(std::string pad, std::string delimiter, bool cleans_up)
      : pad_(std::move(pad)), delimiter_(std::move(delimiter)), cleans_up_(cleans_up) {}

 protected:
  void take_token(std::string_view token, DecoderState& state, Give give) const override {
    if (state.has_begun && state.held == token) return;
    state.has_begun = true;
    state.held = token;
    std::string text = pad_.empty() ? state.held : replaced(token, pad_, "");
    if (cleans_up_) text = replaced(cleaned_up(std::move(text)), delimiter_, " ");
    if (!text.empty()) give({.text = text});
  }

 private:
  std::string pad_;
  std::string delimiter_;
  bool cleans_up_;
};

}  // namespace

Made read_ctc(const json& object) {
  auto delimiter = object.at("word_delimiter_token").get<std::string>();
  if (delimiter.empty()) refuse_part("a CTC without a word_delimiter_token");
  return std::make_shared<Ctc>(object.at("pad_token").get<std::string>(), std::move(delimiter),
                               object.at("cleanup").get<bool>());
}

}  // namespace phalanx::decoders
