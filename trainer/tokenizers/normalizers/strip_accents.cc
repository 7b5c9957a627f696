// SPDX-License-Identifier: Apache-2.0

#include "trainer/tokenizers/normalizers/kinds.h"
#include "trainer/tokenizers/unicode/categories.h"

namespace phalanx::normalizers {
namespace {

using nlohmann::json;

class StripAccents final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override {
    replace_characters(text, [](char32_t code, std::string_view bytes, std::string& result) {
      if (!unicode::is_mark(code)) result += bytes;
    });
  }
};

}  // namespace

Made read_strip_accents(const json& /*object*/) { return std::make_shared<StripAccents>(); }

}  // namespace phalanx::normalizers
