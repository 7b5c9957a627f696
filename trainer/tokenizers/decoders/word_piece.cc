// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "trainer/tokenizers/decoders/cleaned_up.h"
#include "trainer/tokenizers/decoders/kinds.h"

namespace phalanx::decoders {
namespace {

using nlohmann::json;

// Joins what begins with the prefix to what stands before it.
class WordPiece final : public TokenDecoder {
 public:
  WordPiece(std::string prefix, bool cleans_up)
      : prefix_(std::move(prefix)), cleans_up_(cleans_up) {}

 protected:
  void take_token(std::string_view token, DecoderState& state, Give give) const override {
    std::string text(token);
    if (state.has_begun) {
      if (token.starts_with(prefix_)) {
        text.erase(0, prefix_.size());
      } else {
        text.insert(text.begin(), ' ');
      }
    }
    state.has_begun = true;
    if (cleans_up_) text = cleaned_up(std::move(text));
    give({.text = text});
  }

 private:
  std::string prefix_;
  bool cleans_up_;
};

}  // namespace

Made read_word_piece(const json& object) {
  return std::make_shared<WordPiece>(object.at("prefix").get<std::string>(),
                                     object.at("cleanup").get<bool>());
}

}  // namespace phalanx::decoders
