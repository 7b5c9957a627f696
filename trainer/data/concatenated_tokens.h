// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/token_set.h"

namespace phalanx {

/// Several sets one after the other, as one.
class ConcatenatedTokens final : public TokenSet {
 public:
  explicit ConcatenatedTokens(std::vector<std::shared_ptr<const TokenSet>> parts);

  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  void read(int64_t begin, std::span<int64_t> out) const override;
  std::vector<DocumentBegin> document_begins(int64_t begin, int64_t end) const override;
  std::string file_of(int64_t token) const override;
  std::string place_of(int64_t token) const override;
  std::string_view element() const override;

 private:
  size_t part_of(int64_t token) const;
  int64_t begin_of(size_t part) const { return part == 0 ? 0 : ends_[part - 1]; }

  std::vector<std::shared_ptr<const TokenSet>> parts_;
  std::vector<int64_t> ends_;  // of each part in the whole
};

}  // namespace phalanx
