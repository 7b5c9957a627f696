// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/data_file.h"
#include "trainer/data/stored_tokens.h"
#include "trainer/data/token_set.h"
#include "trainer/data/token_type.h"

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
class TokensOfFiles final : public TokenSet {
 public:
  TokensOfFiles(std::shared_ptr<const DataFiles> files, const LayoutOfFile& layout);

  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  void read(int64_t begin, std::span<int64_t> out) const override;
  std::vector<DocumentBegin> document_begins(int64_t begin, int64_t end) const override;
  std::string file_of(int64_t token) const override;
  std::string place_of(int64_t token) const override;
  std::string_view element() const override;

 private:
  size_t file_at(int64_t token) const;
  int64_t begin_of(size_t file) const { return file == 0 ? 0 : ends_[file - 1]; }
  StoredTokens tokens_of(size_t file) const;

  std::shared_ptr<const DataFiles> files_;
  std::vector<TokenLayout> layouts_;  // Each once,
  std::vector<uint8_t> layout_of_;    // and which of them a file has.
  std::vector<int64_t> ends_;         // Of each file's tokens in the whole.
};

}  // namespace phalanx
