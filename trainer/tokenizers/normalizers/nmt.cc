// SPDX-License-Identifier: Apache-2.0

#include "trainer/tokenizers/normalizers/kinds.h"

namespace phalanx::normalizers {
namespace {

using nlohmann::json;

// What SentencePiece drops before its rules (nmt_nfkc).
bool is_dropped(char32_t code) {
  return (code >= 0x01 && code <= 0x08) || code == 0x0B || (code >= 0x0E && code <= 0x1F) ||
         code == 0x7F || code == 0x8F || code == 0x9F;
}

// What it takes for a space.
bool is_space(char32_t code) {
  return code == 0x09 || code == 0x0A || code == 0x0C || code == 0x0D || code == 0x1680 ||
         (code >= 0x200B && code <= 0x200F) || code == 0x2028 || code == 0x2029 || code == 0x2581 ||
         code == 0xFEFF || code == 0xFFFD;
}

class Nmt final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override {
    replace_characters(text, [](char32_t code, std::string_view bytes, std::string& result) {
      if (is_space(code)) {
        result += ' ';
      } else if (!is_dropped(code)) {
        result += bytes;
      }
    });
  }
};

}  // namespace

Made read_nmt(const json& /*object*/) { return std::make_shared<Nmt>(); }

}  // namespace phalanx::normalizers
