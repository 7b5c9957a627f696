// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "trainer/tokenizers/patterns/text_pattern.h"
#include "trainer/tokenizers/pre_tokenizers/cut_by_matches.h"
#include "trainer/tokenizers/pre_tokenizers/kinds.h"
#include "trainer/tokenizers/word_cuts.h"

namespace phalanx::pre_tokenizers {
namespace {

using nlohmann::json;

class Split final : public PreTokenizer {
 public:
  Split(TextPattern pattern, CutRule rule, bool cuts_behind_letters)
      : pattern_(std::move(pattern)), rule_(rule), cuts_behind_letters_(cuts_behind_letters) {}

  void cut(const TextPiece& piece, Take take) const override {
    cut_by_matches(piece, rule_, take,
                   [&](const auto& found) { pattern_.find_all(piece.text, found); });
  }

  bool cuts_behind_letters() const override { return cuts_behind_letters_; }

 private:
  TextPattern pattern_;
  CutRule rule_;
  bool cuts_behind_letters_;
};

// These patterns match every character of a text.
bool ends_words(const json& pattern, const CutRule& rule) {
  return rule.behavior == SplitBehavior::isolated && pattern.contains("Regex") &&
         phalanx::cuts_behind_letters(pattern.at("Regex").get<std::string>());
}

}  // namespace

Made read_split(const json& object) {
  const json& pattern = object.at("pattern");
  const CutRule rule{.behavior = split_behavior_of(object.at("behavior").get<std::string>()),
                     .is_inverted = object.at("invert").get<bool>()};
  return std::make_shared<Split>(TextPattern(pattern), rule, ends_words(pattern, rule));
}

}  // namespace phalanx::pre_tokenizers
