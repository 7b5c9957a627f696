// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/megatron_index.h"
#include "trainer/data/stored_tokens.h"

namespace phalanx {

/// One of Megatron's indexed sets: the tokens of PREFIX.bin, in the documents of PREFIX.idx.
class MegatronTokens final : public TokenSet {
 public:
  /// `prefix` without ".bin" and ".idx". Throws UserError, beginning with `field`, for files that
  /// cannot be read or do not agree.
  MegatronTokens(const std::string& field, const std::filesystem::path& prefix);

  int64_t size() const override { return tokens_.size(); }
  void read(int64_t begin, std::span<int64_t> out) const override { tokens_.read(begin, out); }
  std::vector<DocumentBegin> document_begins(int64_t begin, int64_t end) const override;
  std::string file_of(int64_t token) const override { return tokens_.file_of(token); }
  std::string place_of(int64_t token) const override { return tokens_.place_of(token); }

 private:
  MegatronIndex index_;
  StoredTokens tokens_;
};

}  // namespace phalanx
