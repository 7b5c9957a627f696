// SPDX-License-Identifier: Apache-2.0

#include "trainer/tokenizers/pre_tokenizers/cut_by_matches.h"
#include "trainer/tokenizers/pre_tokenizers/kinds.h"
#include "trainer/tokenizers/unicode/categories.h"

namespace phalanx::pre_tokenizers {
namespace {

using nlohmann::json;

enum class Kind { space, word, other };

Kind kind_of(char32_t code) {
  if (unicode::is_word(code)) return Kind::word;
  return unicode::is_white_space(code) ? Kind::space : Kind::other;
}

// Runs of \w, and runs of what is neither that nor white space.
class Whitespace final : public PreTokenizer {
 public:
  void cut(const TextPiece& piece, Take take) const override {
    size_t begin = 0;
    Kind kind = Kind::space;
    const auto finish = [&](size_t end) {
      if (kind != Kind::space) take(part_of(piece, begin, end));
      begin = end;
    };
    for (size_t place = 0; place < piece.text.size();) {
      const unicode::Character character = unicode::character_at(piece.text, place);
      const Kind next = kind_of(character.code);
      if (next != kind) finish(place);
      kind = next;
      place += character.length;
    }
    finish(piece.text.size());
  }
};

}  // namespace

Made read_whitespace(const json& /*object*/) { return std::make_shared<Whitespace>(); }

}  // namespace phalanx::pre_tokenizers
