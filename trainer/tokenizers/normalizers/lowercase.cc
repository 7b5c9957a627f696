// SPDX-License-Identifier: Apache-2.0

#include "trainer/tokenizers/normalizers/kinds.h"
#include "trainer/tokenizers/unicode/categories.h"

namespace phalanx::normalizers {
namespace {

using nlohmann::json;

class Lowercase final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override {
    replace_characters(text, [](char32_t code, std::string_view /*bytes*/, std::string& result) {
      unicode::append_lowercase(code, result);
    });
  }
};

}  // namespace

Made read_lowercase(const json& /*object*/) { return std::make_shared<Lowercase>(); }

}  // namespace phalanx::normalizers
