// SPDX-License-Identifier: Apache-2.0

#include "trainer/tokenizers/pre_tokenizers/cut_by_matches.h"
#include "trainer/tokenizers/pre_tokenizers/kinds.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"

namespace phalanx::pre_tokenizers {
namespace {

using nlohmann::json;

class Delimiter final : public PreTokenizer {
 public:
  explicit Delimiter(char32_t delimiter) : delimiter_(delimiter) {}

  void cut(const TextPiece& piece, Take take) const override {
    cut_at_characters(piece, SplitBehavior::removed, take,
                      [&](char32_t code) { return code == delimiter_; });
  }

 private:
  char32_t delimiter_;
};

}  // namespace

Made read_delimiter(const json& object) {
  return std::make_shared<Delimiter>(character_of(object.at("delimiter")));
}

}  // namespace phalanx::pre_tokenizers
