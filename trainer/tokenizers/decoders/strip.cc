// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "trainer/tokenizers/decoders/kinds.h"
#include "trainer/tokenizers/json_vocabulary.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"
#include "trainer/tokenizers/unicode/characters.h"

namespace phalanx::decoders {
namespace {

using nlohmann::json;

// At most so many of one character at both ends of each token. `held` are those that may be at the
// end; `count` is how many were at the beginning.
class Strip final : public Decoder {
 public:
  struct Options {
    std::string character;
    size_t start = 0;
    size_t stop = 0;
  };

  explicit Strip(Options options) : options_(std::move(options)) {}

  void take(const TokenPart& part, DecoderState& state, Give give) const override {
    const std::string& character = options_.character;
    if (part.begins) state = {.has_begun = false, .held = {}, .parts = {}, .count = 0};
    std::string_view text = part.text;
    while (!state.has_begun && state.count < options_.start && text.starts_with(character)) {
      text.remove_prefix(character.size());
      ++state.count;
    }
    if (!text.empty()) state.has_begun = true;
    std::string known = std::exchange(state.held, {});
    known += text;
    size_t end = known.size();
    for (size_t i = 0;
         i < options_.stop && std::string_view(known).substr(0, end).ends_with(character); ++i) {
      end -= character.size();
    }
    if (!part.ends) state.held = known.substr(end);
    known.resize(end);
    give({.text = known, .begins = part.begins, .ends = part.ends});
  }

 private:
  Options options_;
};

}  // namespace

Made read_strip(const json& object) {
  Strip::Options options{
      .character = {}, .start = count_in(object.at("start")), .stop = count_in(object.at("stop"))};
  unicode::append_character(character_of(object.at("content")), options.character);
  return std::make_shared<Strip>(std::move(options));
}

}  // namespace phalanx::decoders
