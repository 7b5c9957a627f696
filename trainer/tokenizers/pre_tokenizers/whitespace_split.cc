// SPDX-License-Identifier: Apache-2.0

#include "trainer/tokenizers/pre_tokenizers/cut_by_matches.h"
#include "trainer/tokenizers/pre_tokenizers/kinds.h"
#include "trainer/tokenizers/unicode/categories.h"

namespace phalanx::pre_tokenizers {
namespace {

using nlohmann::json;

class WhitespaceSplit final : public PreTokenizer {
 public:
  void cut(const TextPiece& piece, Take take) const override {
    cut_at_characters(piece, SplitBehavior::removed, take, unicode::is_white_space);
  }
};

}  // namespace

Made read_whitespace_split(const json& /*object*/) { return std::make_shared<WhitespaceSplit>(); }

}  // namespace phalanx::pre_tokenizers
