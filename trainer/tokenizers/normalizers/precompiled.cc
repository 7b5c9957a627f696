// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/tokenizers/normalizers/base64.h"
#include "trainer/tokenizers/normalizers/charsmap.h"
#include "trainer/tokenizers/normalizers/kinds.h"
#include "trainer/tokenizers/unicode/graphemes.h"

namespace phalanx::normalizers {
namespace {

using nlohmann::json;

// The longest cluster, in bytes, that is looked up as a whole.
constexpr size_t kLongestCluster = 5;

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(std::string_view charsmap) : rules_(charsmap) {
    for (size_t code = 0; code < ascii_.size(); ++code) {
      const char c = static_cast<char>(code);
      ascii_[code] = std::string(rules_.find({&c, 1}).value_or(std::string_view(&c, 1)));
    }
  }

  void apply(NormalizedText& text) const override {
    std::string result;
    result.reserve(text.text.size());
    size_t at_start = 0;
    for (size_t place = 0; place < text.text.size();) {
      place += append(text.text, place, result);
      if (at_start == 0 && text.at_start > 0) at_start = result.size();
    }
    text.text = std::move(result);
    text.at_start = at_start;
  }

 private:
  // Appends what becomes of the cluster at text[place]; gives its length.
  size_t append(std::string_view text, size_t place, std::string& result) const {
    const auto is_ascii = [&](size_t i) { return static_cast<unsigned char>(text[i]) < 0x80; };
    if (is_ascii(place) && (place + 1 == text.size() || is_ascii(place + 1)) &&
        text[place] != '\r') {
      result += ascii_[static_cast<unsigned char>(text[place])];
      return 1;
    }
    const size_t length = unicode::grapheme_length(text, place);
    const std::string_view cluster = text.substr(place, length);
    if (length <= kLongestCluster) {
      if (const auto found = rules_.find(cluster)) {
        result += *found;
        return length;
      }
    }
    for (size_t i = 0; i < length;) {
      const std::string_view character =
          cluster.substr(i, unicode::character_at(cluster, i).length);
      result += rules_.find(character).value_or(character);
      i += character.size();
    }
    return length;
  }

  Charsmap rules_;
  std::array<std::string, 0x80> ascii_;  // What becomes of each character of ASCII.
};

}  // namespace

Made read_precompiled(const json& object) {
  return std::make_shared<Precompiled>(
      bytes_of_base64(object.at("precompiled_charsmap").get<std::string>()));
}

}  // namespace phalanx::normalizers
