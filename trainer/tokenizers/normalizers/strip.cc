// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "trainer/tokenizers/normalizers/kinds.h"
#include "trainer/tokenizers/unicode/categories.h"

namespace phalanx::normalizers {
namespace {

using nlohmann::json;

// Bytes of the white space that a text begins with.
size_t leading_length(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    const unicode::Character character = unicode::character_at(text, length);
    if (!unicode::is_white_space(character.code)) break;
    length += character.length;
  }
  return length;
}

size_t trailing_length(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const size_t length = unicode::last_character_length(text.substr(0, end));
    if (!unicode::is_white_space(unicode::character_at(text, end - length).code)) break;
    end -= length;
  }
  return text.size() - end;
}

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  void apply(NormalizedText& text) const override {
    if (right_) text.text.resize(text.text.size() - trailing_length(text.text));
    const size_t leading = left_ ? leading_length(text.text) : 0;
    text.text.erase(0, leading);
    text.at_start -= std::min(text.at_start, leading);
    text.at_start = std::min(text.at_start, text.text.size());
  }

 private:
  bool left_;
  bool right_;
};

}  // namespace

Made read_strip(const json& object) {
  return std::make_shared<Strip>(object.at("strip_left").get<bool>(),
                                 object.at("strip_right").get<bool>());
}

}  // namespace phalanx::normalizers
