// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// Each byte is a token, 256 in all.
class ByteTokenizer final : public Tokenizer {
 public:
  void encode(std::string_view text, SpecialText special,
              std::vector<int32_t>& tokens) const override;
  void append_bytes(int32_t token, DecodingState& state, std::string& bytes) const override;
  std::size_t last_cut(std::string_view text) const override;
  int32_t vocabulary_size() const override { return 256; }
  std::optional<int32_t> end_of_text() const override { return std::nullopt; }
};

}  // namespace phalanx
