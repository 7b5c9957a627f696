// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "trainer/tokenizers/patterns/text_pattern.h"
#include "trainer/tokenizers/pre_tokenizers/cut_by_matches.h"
#include "trainer/tokenizers/pre_tokenizers/kinds.h"

namespace phalanx::pre_tokenizers {
namespace {

using nlohmann::json;

class Split final : public PreTokenizer {
 public:
  Split(TextPattern pattern, CutRule rule) : pattern_(std::move(pattern)), rule_(rule) {}

  void cut(const TextPiece& piece, Take take) const override {
    cut_by_matches(piece, rule_, take,
                   [&](const auto& found) { pattern_.find_all(piece.text, found); });
  }

 private:
  TextPattern pattern_;
  CutRule rule_;
};

}  // namespace

Made read_split(const json& object) {
  return std::make_shared<Split>(
      TextPattern(object.at("pattern")),
      CutRule{.behavior = split_behavior_of(object.at("behavior").get<std::string>()),
              .is_inverted = object.at("invert").get<bool>()});
}

}  // namespace phalanx::pre_tokenizers
