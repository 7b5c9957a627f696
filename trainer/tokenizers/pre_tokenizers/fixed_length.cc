// SPDX-License-Identifier: Apache-2.0

#include "trainer/tokenizers/json_vocabulary.h"
#include "trainer/tokenizers/pre_tokenizers/cut_by_matches.h"
#include "trainer/tokenizers/pre_tokenizers/kinds.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"

namespace phalanx::pre_tokenizers {
namespace {

using nlohmann::json;

class FixedLength final : public PreTokenizer {
 public:
  explicit FixedLength(size_t length) : length_(length) {}

  void cut(const TextPiece& piece, Take take) const override {
    size_t begin = 0;
    while (begin < piece.text.size()) {
      size_t end = begin;
      for (size_t i = 0; i < length_ && end < piece.text.size(); ++i) {
        end += unicode::character_at(piece.text, end).length;
      }
      take(part_of(piece, begin, end));
      begin = end;
    }
  }

 private:
  size_t length_;
};

}  // namespace

Made read_fixed_length(const json& object) {
  const auto length = object.contains("length") ? count_in(object.at("length")) : size_t{5};
  if (length == 0) refuse_part("a FixedLength of 0");
  return std::make_shared<FixedLength>(length);
}

}  // namespace phalanx::pre_tokenizers
