// SPDX-License-Identifier: Apache-2.0

#include "trainer/tokenizers/byte_alphabet.h"
#include "trainer/tokenizers/normalizers/kinds.h"

namespace phalanx::normalizers {
namespace {

using nlohmann::json;

class ByteLevel final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override {
    replace_characters(text, [](char32_t /*code*/, std::string_view bytes, std::string& result) {
      append_visible_bytes(bytes, result);
    });
  }
};

}  // namespace

Made read_byte_level(const json& /*object*/) { return std::make_shared<ByteLevel>(); }

}  // namespace phalanx::normalizers
