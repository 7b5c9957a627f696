// SPDX-License-Identifier: Apache-2.0

#include "trainer/tokenizers/pre_tokenizers/cut_by_matches.h"
#include "trainer/tokenizers/pre_tokenizers/kinds.h"
#include "trainer/tokenizers/unicode/categories.h"

namespace phalanx::pre_tokenizers {
namespace {

using nlohmann::json;

class Punctuation final : public PreTokenizer {
 public:
  explicit Punctuation(SplitBehavior behavior) : behavior_(behavior) {}

  void cut(const TextPiece& piece, Take take) const override {
    cut_at_characters(piece, behavior_, take, unicode::is_punctuation);
  }

  bool looks_beside_cuts_alone() const override { return true; }

 private:
  SplitBehavior behavior_;
};

}  // namespace

Made read_punctuation(const json& object) {
  return std::make_shared<Punctuation>(split_behavior_of(object.value("behavior", "Isolated")));
}

}  // namespace phalanx::pre_tokenizers
