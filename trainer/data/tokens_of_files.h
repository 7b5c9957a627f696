// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "trainer/data/data_file.h"
#include "trainer/data/stored_tokens.h"
#include "trainer/data/token_type.h"
#include "trainer/data/tokens_end_to_end.h"

namespace phalanx {

/// How a file stores its tokens: from byte `offset` to its end.
struct TokenLayout {
  TokenType type = TokenType::uint8;
  int64_t offset = 0;
  std::optional<DocumentEnds> ends = {};  ///< Without them a file is a document.

  bool operator==(const TokenLayout&) const = default;
};

/// Looks at a file. Throws UserError where it is none of its kind.
using LayoutOfFile = std::function<TokenLayout(const DataFile& file)>;

/// The tokens of files, one after the other. Of a million files little more than the names is kept.
class TokensOfFiles final : public TokensEndToEnd {
 public:
  TokensOfFiles(std::shared_ptr<const DataFiles> files, const LayoutOfFile& layout);

  std::string_view element() const override;

 private:
  void with_part(size_t part, Use use) const override;

  std::shared_ptr<const DataFiles> files_;
  std::vector<TokenLayout> layouts_;  // Each once,
  std::vector<uint8_t> layout_of_;    // and which of them a file has.
};

}  // namespace phalanx
