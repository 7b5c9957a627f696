// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "trainer/tokenizers/decoders/kinds.h"
#include "trainer/tokenizers/patterns/text_pattern.h"

namespace phalanx::decoders {
namespace {

using nlohmann::json;

class Replace final : public TokenDecoder {
 public:
  Replace(TextPattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

 protected:
  void take_token(std::string_view token, DecoderState& /*state*/, Give give) const override {
    std::string text;
    size_t done = 0;
    pattern_.find_all(token, [&](size_t begin, size_t end) {
      text += token.substr(done, begin - done);
      text += content_;
      done = end;
    });
    text += token.substr(done);
    give({.text = text});
  }

 private:
  TextPattern pattern_;
  std::string content_;
};

}  // namespace

Made read_replace(const json& object) {
  return std::make_shared<Replace>(TextPattern(object.at("pattern")),
                                   object.at("content").get<std::string>());
}

}  // namespace phalanx::decoders
