// SPDX-License-Identifier: Apache-2.0

#include "trainer/tokenizers/pre_tokenizers/cut_by_matches.h"
#include "trainer/tokenizers/pre_tokenizers/kinds.h"
#include "trainer/tokenizers/unicode/categories.h"

namespace phalanx::pre_tokenizers {
namespace {

using nlohmann::json;

class Bert final : public PreTokenizer {
 public:
  void cut(const TextPiece& piece, Take take) const override {
    const auto cut_word = [&](const TextPiece& word) {
      cut_at_characters(word, SplitBehavior::isolated, take, unicode::is_punctuation);
    };
    cut_at_characters(piece, SplitBehavior::removed, cut_word, unicode::is_white_space);
  }
};

}  // namespace

Made read_bert(const json& /*object*/) { return std::make_shared<Bert>(); }

}  // namespace phalanx::pre_tokenizers
