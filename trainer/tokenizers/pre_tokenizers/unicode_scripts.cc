// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "trainer/tokenizers/pre_tokenizers/cut_by_matches.h"
#include "trainer/tokenizers/pre_tokenizers/kinds.h"
#include "trainer/tokenizers/unicode/scripts.h"

namespace phalanx::pre_tokenizers {
namespace {

using nlohmann::json;

// Cuts where a character is of another script than the last one that is of any. What stands before
// the first of these is lost, as in the package.
class UnicodeScripts final : public PreTokenizer {
 public:
  void cut(const TextPiece& piece, Take take) const override {
    int last = 0;
    std::optional<size_t> begin;
    for (size_t place = 0; place < piece.text.size();) {
      const unicode::Character character = unicode::character_at(piece.text, place);
      const int script = unicode::script_of(character.code);
      if (script != 0 && script != last) {
        if (begin) take(part_of(piece, *begin, place));
        begin = place;
        last = script;
      }
      place += character.length;
    }
    if (begin) take(part_of(piece, *begin, piece.text.size()));
  }
};

}  // namespace

Made read_unicode_scripts(const json& /*object*/) { return std::make_shared<UnicodeScripts>(); }

}  // namespace phalanx::pre_tokenizers
