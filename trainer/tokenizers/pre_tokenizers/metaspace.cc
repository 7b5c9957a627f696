// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include "trainer/tokenizers/metaspace_options.h"
#include "trainer/tokenizers/pre_tokenizers/cut_by_matches.h"
#include "trainer/tokenizers/pre_tokenizers/kinds.h"

namespace phalanx::pre_tokenizers {
namespace {

using nlohmann::json;

// Shows spaces as characters, and cuts before each.
class Metaspace final : public PreTokenizer {
 public:
  explicit Metaspace(MetaspaceOptions options) : options_(std::move(options)) {}

  void cut(const TextPiece& piece, Take take) const override {
    const std::string& sign = options_.replacement;
    std::string text;
    size_t at_start = 0;
    for (size_t i = 0; i < piece.text.size(); ++i) {
      if (piece.text[i] == ' ') {
        text += sign;
      } else {
        text += piece.text[i];
      }
      if (i + 1 == piece.at_start) at_start = text.size();
    }
    const bool is_asked = options_.prefix == MetaspaceOptions::Prefix::always ||
                          (options_.prefix == MetaspaceOptions::Prefix::first && at_start > 0);
    if (is_asked && !text.starts_with(sign)) {
      text.insert(0, sign);
      if (at_start > 0) at_start += sign.size();
    }
    const TextPiece changed{.text = text, .at_start = at_start};
    if (!options_.splits) {
      take(changed);
      return;
    }
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find(sign, begin + 1), text.size());
      take(part_of(changed, begin, end));
      begin = end;
    }
  }

  bool asks_for_start() const override { return true; }

 private:
  MetaspaceOptions options_;
};

}  // namespace

Made read_metaspace(const json& object) {
  return std::make_shared<Metaspace>(read_metaspace_options(object));
}

}  // namespace phalanx::pre_tokenizers
