// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/data_file.h"
#include "trainer/data/token_set.h"
#include "trainer/data/token_type.h"

namespace phalanx {

/// Where the documents of a run of tokens begin.
struct DocumentEnds {
  int64_t end_of_text = 0;
  bool is_first = false;  ///< It stands before a document (llm.c), not after it (nanoGPT).

  bool operator==(const DocumentEnds&) const = default;
};

/// Tokens of one type in a part of a file.
class StoredTokens final : public TokenSet {
 public:
  /// `count` tokens from byte `offset` on, which must lie inside the file. Without `ends` they are
  /// one document.
  StoredTokens(DataFile file, int64_t offset, int64_t count, TokenType type,
               std::optional<DocumentEnds> ends = {});

  int64_t size() const override { return count_; }
  void read(int64_t begin, std::span<int64_t> out) const override;
  std::vector<DocumentBegin> document_begins(int64_t begin, int64_t end) const override;
  std::string file_of(int64_t) const override { return file_.path().string(); }
  std::string place_of(int64_t token) const override;
  std::string_view element() const override {
    return type_ == TokenType::uint8 ? "bytes" : "tokens";
  }

 private:
  DataFile file_;
  int64_t offset_;
  int64_t count_;
  TokenType type_;
  std::optional<DocumentEnds> ends_;
};

}  // namespace phalanx
