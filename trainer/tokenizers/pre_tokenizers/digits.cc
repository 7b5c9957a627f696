// SPDX-License-Identifier: Apache-2.0

#include "trainer/tokenizers/pre_tokenizers/cut_by_matches.h"
#include "trainer/tokenizers/pre_tokenizers/kinds.h"
#include "trainer/tokenizers/unicode/categories.h"

namespace phalanx::pre_tokenizers {
namespace {

using nlohmann::json;

class Digits final : public PreTokenizer {
 public:
  explicit Digits(bool takes_each) : takes_each_(takes_each) {}

  void cut(const TextPiece& piece, Take take) const override {
    cut_at_characters(piece, takes_each_ ? SplitBehavior::isolated : SplitBehavior::contiguous,
                      take, unicode::is_numeric);
  }

  bool looks_beside_cuts_alone() const override { return true; }

 private:
  bool takes_each_;
};

}  // namespace

Made read_digits(const json& object) {
  return std::make_shared<Digits>(object.at("individual_digits").get<bool>());
}

}  // namespace phalanx::pre_tokenizers
